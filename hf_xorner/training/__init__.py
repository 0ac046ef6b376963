"""Training: the Trainer subclass, its collator, and a whole run from data to a saved model."""
