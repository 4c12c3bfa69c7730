"""The cells engine: geometric branch and bound over directions and thresholds."""
