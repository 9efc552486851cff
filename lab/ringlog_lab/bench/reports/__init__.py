"""Results of the benchmark: their report, pictures, targets and comparison."""
