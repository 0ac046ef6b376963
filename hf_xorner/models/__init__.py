"""What travels to the Hub beside the weights: flat modules that import torch, transformers and each other only."""
