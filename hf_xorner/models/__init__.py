"""Configs, models and tokenizer: flat modules that are saved beside the weights and import only each other."""
