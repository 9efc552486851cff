"""A long load at the normal rate (papers/004's fourteen days), to find figures that get worse over time."""
