"""Export of taggers to run without PyTorch."""
