"""Nodes: other servers with tables of their own."""
