"""The T-SQL front end: batches that are more than a procedure call."""
