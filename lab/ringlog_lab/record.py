"""The figures of a benchmark."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A single figure: its subject, amount and unit."""

    name: str
    amount: float
    unit: str
