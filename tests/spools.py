"""The waiting rows in the spools of an ended `ringlog load`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path


def waiting(folder: Path, table: str) -> set[int]:
    """The numbers of a table's rows, of one column, that were not acknowledged when their writer ended: it
    sends as many as it can within seconds, on a busy machine not all.
    """
    found: set[int] = set()
    for file in folder.rglob(f"{table}.spool"):
        with closing(sqlite3.connect(file)) as spool:
            found |= {json.loads(readings)[0] for (readings,) in spool.execute("select readings from row")}
    return found
