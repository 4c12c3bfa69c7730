"""Many runs at once: comparisons of oracles, learning curves, batches."""
