"""Limits that PostgreSQL does not have: resources are kept for writers."""
