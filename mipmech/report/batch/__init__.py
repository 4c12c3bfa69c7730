"""What a report shows of a batch of jobs."""
