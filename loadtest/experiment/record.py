"""The measurements of a benchmark, as JSON."""

from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Record:
    """Figures whose fields JSON holds as they are; one with records in it reads those itself."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        return cls(**content)


@dataclass(frozen=True)
class Figure(Record):
    """A figure by itself: what it is of, and how much of its unit."""

    name: str
    amount: float
    unit: str


@dataclass(frozen=True)
class Compared(Record):
    """A figure of one of several ways to do the same."""

    form: str
    what: str
    amount: float
    unit: str
