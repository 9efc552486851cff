"""Several machines: what is installed on each, and how they do."""
