"""Installs a facility in a database: what differs, what stands in the way, versions."""
