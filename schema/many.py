"""Work on thousands of tables, a limited number per connection: PostgreSQL's process caches the definition of
each table until it ends."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

PER_CONNECTION = 100
"""tables"""


def by_connection(tables: Sequence[T]) -> list[Sequence[T]]:
    return [tables[first : first + PER_CONNECTION] for first in range(0, len(tables), PER_CONNECTION)]
