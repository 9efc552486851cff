"""Several machines: what is installed on each, and their state."""
