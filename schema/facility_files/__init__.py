"""Reads and checks facility files."""
