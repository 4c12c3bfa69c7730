"""Geometry and bookkeeping that several oracles share."""
