"""The settings of a load, passed to the processes of locust by the environment."""

import json
import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

ENVIRONMENT = "RINGLOG_LOAD"


class Pace(StrEnum):
    """The time of a user's next call."""

    NORMAL = "normal"
    """at its table's cycle"""
    MAX = "max"
    """immediately after the server's answer"""


@dataclass(frozen=True)
class LocustLoad:
    """The logins and tables of a load, its server, and the folder of its record."""

    facility: Path
    writer: str
    """URL of the writers' login: tds://user@host:port, without a password"""
    reader: str | None
    """URL of the readers' login; None: there are writers only"""
    pace: Pace = Pace.NORMAL
    columns: int | None = None
    """only tables with so many data columns have users; None: all"""
    calls: Path | None = None
    """file for the records of all calls, on locust's master"""

    def environment(self) -> dict[str, str]:
        """The environment variable that passes this to locust."""
        return {ENVIRONMENT: json.dumps(asdict(self), default=str)}

    @classmethod
    def from_environment(cls) -> "LocustLoad":
        given = json.loads(os.environ[ENVIRONMENT])
        return cls(
            facility=Path(given["facility"]),
            writer=given["writer"],
            reader=given["reader"],
            pace=Pace(given["pace"]),
            columns=given["columns"],
            calls=Path(given["calls"]) if given["calls"] else None,
        )
