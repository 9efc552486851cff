"""Machines that die while rows come."""
