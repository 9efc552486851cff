"""The figures of a benchmark."""

from dataclasses import dataclass

from ringlog_lab.native_load import Measurement


@dataclass(frozen=True)
class Figure:
    """A single figure: its subject, amount and unit."""

    name: str
    amount: float
    unit: str


@dataclass(frozen=True)
class Disturbed:
    """Writers measured during other work, or alone."""

    work: str
    """`texts` or `archive`"""
    amount: float
    """of it: texts a second, weeks; 0: none, the writers are alone"""
    writing: Measurement
