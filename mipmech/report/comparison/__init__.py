"""What a report shows of a comparison of oracles."""
