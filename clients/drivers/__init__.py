"""The drivers of connections: their conversions of parameters, results and errors."""

from importlib import import_module
from typing import cast

from ringlog.clients.procedure import Connection, Driver

# A connection's class belongs to the driver's package.
_MODULES = {"pymssql": "pymssql", "ctds": "ctds", "psycopg": "psycopg"}


def driver(name: str) -> Driver:
    """pymssql, ctds or psycopg. Raises ImportError for one that is not installed."""
    return cast(Driver, import_module(f"ringlog.clients.drivers.{name}"))


def driver_of(connection: Connection) -> Driver:
    """The driver that made a connection. Raises TypeError for one of another driver."""
    for kind in type(connection).__mro__:
        if name := _MODULES.get(kind.__module__.partition(".")[0]):
            return driver(name)
    raise TypeError(f"{type(connection).__name__} is not a connection of pymssql, ctds or psycopg")
