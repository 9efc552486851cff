"""Faults of every kind in random order, with a seed, during continuous writing: `make chaos`."""
