"""Export taggers to ONNX, and run them without PyTorch and transformers."""
