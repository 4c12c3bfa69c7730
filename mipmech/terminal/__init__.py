"""Results in words and tables, for people at a terminal."""
