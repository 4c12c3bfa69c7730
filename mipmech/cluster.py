"""Tasks on a Dask cluster: the same interface as `workers.Processes`, for many machines."""
