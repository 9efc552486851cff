"""Looks for every acknowledged row, in rings, log and archive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from psycopg import sql

from ringlog.history.reading import read
from ringlog.loader.sources import Reading
from ringlog.loadtest.experiment.server import Server
from ringlog.loadtest.readings import SETS, readings
from ringlog.schema.facility import Facility, Table

if TYPE_CHECKING:
    from ringlog.loadtest.spring8.recorded import Records


@dataclass(frozen=True)
class Found:
    """Counts of rows."""

    acknowledged: int
    past_retention: int
    """acknowledged, and no more there, as it should be"""
    left_out: int
    """acknowledged, and not logged by the table's policy"""
    found: int
    """acknowledged, kept, and in log or archive; one stored twice counts twice"""
    altered: int
    """stored with other values, or never sent"""
    in_rings: int
    """the last round of each ring: those that are there"""
    of_rings: int
    """the last round of each ring: those acknowledged"""


def look_for(server: Server, facility: Facility, written: "Records") -> Found:
    """`written` are the records of acknowledged rows. The ring must have the last round of each table, log
    and archive everything that retention and policy leave."""
    parts = [
        _of_table(server, table, written[written["table"] == index])
        for index, table in enumerate(facility.tables)
    ]
    fields = Found.__dataclass_fields__
    return Found(**{name: sum(getattr(part, name) for part in parts) for name in fields})


def _of_table(server: Server, table: Table, written: "Records") -> Found:
    sent = np.sort(written["begun"])
    dropped = server.administrator.execute(
        "select coalesce(max(extract(epoch from until) * 1000000)::bigint, 0) from ringlog.dropped"
        " where table_name = %s",
        [table.name],
    ).fetchone()
    assert dropped is not None
    kept = sent[np.searchsorted(sent, dropped[0]) :]
    every = table.log.nth == 1 and table.log.period is None
    sets = readings(table)
    stored, strange, altered = 0, 0, 0
    names = [column.name for column in table.columns]
    for batch in read(server.administrator_conninfo, table.name, names):
        times = batch.column("time").cast(pa.int64()).to_numpy()
        known = _are_in(times, kept)
        stored += int(known.sum())
        strange += int((~known).sum())
        altered += _altered(batch, times, sets)
    rows = _ring(server, table.name)
    last = {int(one["number"]): int(one["begun"]) for one in written[-table.rows :]}
    return Found(
        acknowledged=len(sent),
        past_retention=len(sent) - len(kept),
        left_out=0 if every else len(kept) - stored,
        found=stored,
        altered=altered + strange,
        in_rings=sum(rows.get(seq_no) == time for seq_no, time in last.items()),
        of_rings=len(last),
    )


def _are_in(times: NDArray[np.int64], among: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each time is one of others, which are sorted."""
    if not len(among):
        return np.zeros(len(times), bool)
    places = np.searchsorted(among, times)
    found: NDArray[np.bool_] = among[np.minimum(places, len(among) - 1)] == times
    return found


def _altered(batch: pa.RecordBatch, times: NDArray[np.int64], sets: Sequence[Mapping[str, Reading]]) -> int:
    """The rows with a value that was not sent with their time."""
    which = pa.array(times % SETS)
    wrong = np.zeros(len(times), bool)
    for name in sets[0]:
        stored = batch.column(name)
        sent = pa.array([one[name] for one in sets], stored.type).take(which)
        differ = pc.or_(
            pc.fill_null(pc.not_equal(stored, sent), False), pc.xor(pc.is_null(stored), pc.is_null(sent))
        )
        wrong |= differ.to_numpy(zero_copy_only=False)
    return int(wrong.sum())


def _ring(server: Server, table: str) -> dict[int, int]:
    """The times in a ring, in microseconds since 1970, by seq_no."""
    query = sql.SQL(
        'select seq_no, (extract(epoch from "time") * 1000000)::bigint from {} where "time" is not null'
    )
    return dict(server.administrator.execute(query.format(sql.Identifier("online", table))).fetchall())
