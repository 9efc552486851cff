"""Work on thousands of tables, some of them by one connection: PostgreSQL's process keeps what it has read of
each table until it ends."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

PER_CONNECTION = 100
"""tables"""


def by_connection(tables: Sequence[T]) -> list[Sequence[T]]:
    """The tables in parts, each for a connection of its own."""
    return [tables[first : first + PER_CONNECTION] for first in range(0, len(tables), PER_CONNECTION)]
