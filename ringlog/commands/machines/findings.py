"""Findings of `ringlog doctor`."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["danger", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """`danger`: acknowledged rows can be lost. `warning`: slow, or will fail later. `note`: information."""

    level: Level
    what: str
    why: str
    do: str
