"""Faults of every kind in random order, with a seed, beside writers that never rest: `make chaos`."""
