"""The embedded PostgreSQL: its programs, its data directory, its life cycle."""
