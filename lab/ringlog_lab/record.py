"""The figures of a benchmark."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure by itself: what it is of, and how much of its unit."""

    name: str
    amount: float
    unit: str


@dataclass(frozen=True)
class Compared:
    """A figure of one of several ways to do the same."""

    form: str
    what: str
    amount: float
    unit: str
