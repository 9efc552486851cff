"""Failures of machines under load."""
