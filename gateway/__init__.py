"""How legacy clients reach ringlog: the TDS server in front of PostgreSQL."""

from ringlog.gateway._core import Gateway

__all__ = ["Gateway"]
