"""The old server: sessions, its catalogue, and its values."""
