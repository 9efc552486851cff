"""The figures of a benchmark."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A single figure: its subject, amount and unit."""

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
