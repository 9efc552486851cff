"""The weeks that old rows have reached, and the progress of each source."""

from dataclasses import dataclass
from datetime import datetime

import psycopg

from ringlog.schema.moments import in_utc
from ringlog.schema.relations.partitions import Week


@dataclass(frozen=True)
class Moved:
    """A week that is in the archive now."""

    week: Week
    rows: int
    """that were received"""
    values: int
    bytes: int
    """of its file"""
    repeated: int
    """rows that the archive had already"""
    conflicting: int
    """rows whose key the archive has with other values: left out"""
    checksum: str
    seconds: float
    fraction: float | None
    """of the source, that has been read"""


@dataclass(frozen=True)
class Progress:
    """The progress of a source; times are in UTC."""

    table: str
    source: str
    reached: datetime | None
    until: datetime
    rows: int
    values: int
    left_out: int
    began: datetime
    begun_at: float
    fraction: float
    noted: datetime

    @property
    def is_done(self) -> bool:
        return self.reached is not None and self.reached >= self.until

    def ends(self, now: datetime) -> datetime | None:
        """The expected end, at the speed of this run; None: not known yet."""
        done = self.fraction - self.begun_at
        if self.is_done or done <= 0 or self.noted <= self.began:
            return None
        return max(now, self.noted + (self.noted - self.began) * ((1 - self.fraction) / done))


def progress(connection: psycopg.Connection) -> list[Progress]:
    """The progress of each source of old rows, by table."""
    query = (
        'select table_name, source, reached, until, rows, "values", left_out, began, begun_at, fraction,'
        " noted from ringlog.migration order by table_name, began"
    )
    return [Progress(*map(in_utc, row)) for row in connection.execute(query)]
