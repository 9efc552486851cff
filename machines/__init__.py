"""Several machines: the files of each, and their state."""
