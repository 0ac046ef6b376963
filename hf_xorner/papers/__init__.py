"""What the papers measure: their tables, run again and set beside what was published."""
