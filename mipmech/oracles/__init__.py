"""Density oracles: the contract, the registry, and one package per method."""
