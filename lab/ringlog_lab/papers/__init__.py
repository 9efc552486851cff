"""The five papers again: a list of runs, made on a quiet machine, and joined into one report."""
