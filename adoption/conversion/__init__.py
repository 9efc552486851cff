"""The objects of an old database as T-SQL for ringlog."""
