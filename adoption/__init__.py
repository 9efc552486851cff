"""Moving in: what an old server has, what becomes of it here, and its rows."""
