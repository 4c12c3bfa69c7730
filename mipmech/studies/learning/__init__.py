"""Learning curves: the best rule on a sample, held against the population."""
