"""Taggers in other programs: spaCy, Ray Data and Spark; each needs the extra of its name."""
