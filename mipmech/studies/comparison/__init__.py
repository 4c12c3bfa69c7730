"""Oracles compared: the same questions, the same limits, held against proved bounds."""
