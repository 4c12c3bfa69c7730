"""Heuristic oracles: good rules fast, and no upper bound."""
