"""Faults of every kind in random order, with a seed, beside writers without pauses: `make chaos`."""
