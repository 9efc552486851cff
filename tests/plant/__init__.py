"""A plant's weeks in minutes: random operations on a real server, and a model in dictionaries with the
expected result of each read."""
