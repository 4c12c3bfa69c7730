"""Where work is done: one interface for processes on this machine and for a Dask cluster."""
