"""Combinatorial sweeps: a second opinion in two and three dimensions."""
