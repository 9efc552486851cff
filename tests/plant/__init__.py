"""A plant's weeks in minutes: random operations on a real server, and a model in dictionaries that says what
each read must give."""
