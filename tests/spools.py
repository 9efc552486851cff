"""The rows in spools."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ringlog.clients.readings import Reading, stored
from ringlog.clients.spool.spool import Spool, Spooled


def waiting(folder: Path, table: str) -> set[int]:
    """The numbers of a table's rows, of one column, that were not acknowledged when their `ringlog load`
    ended: it sends as many as it can within seconds, on a busy machine not all."""
    found: set[int] = set()
    for file in folder.rglob(f"{table}.spool"):
        with closing(sqlite3.connect(file)) as spool:
            found |= {json.loads(readings)[0] for (readings,) in spool.execute("select readings from row")}
    return found


def everything(spool: Spool) -> list[Spooled]:
    """The rows of an open spool."""
    rows, last = [], 0
    while row := spool.after(last):
        rows.append(row)
        last = row.id
    return rows


def put(spool: Spool, time: int, readings: Sequence[Reading]) -> None:
    """Puts a row into an open spool."""
    spool.put([(time, stored(readings))])
