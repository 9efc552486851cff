"""Servers that people use instead: found where they are installed, started on data of their own."""
