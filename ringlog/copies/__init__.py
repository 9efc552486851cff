"""Copies of the embedded PostgreSQL: backup, restore, and the upgrade to a newer PostgreSQL."""
