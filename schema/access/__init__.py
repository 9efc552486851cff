"""Roles, and rights to single tables."""
