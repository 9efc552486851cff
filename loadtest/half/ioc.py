"""PVs of a real soft IOC, written by `ringlog load`: how many updates reach the log."""

import time
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from psycopg import sql

from ringlog.loadtest.bench.server import Server
from ringlog.loadtest.experiment.epics import ioc, loading, own_ports
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.half.published import HERTZ
from ringlog.loadtest.half.replay import PVS_OF_A_TABLE, tables

_CONNECTED, _A_PV = 120.0, 0.02
"""Seconds until all PVs are connected, at least, and more for each PV."""


@dataclass(frozen=True)
class Listened:
    """The outcome of an IOC's updates. Every PV counts its own."""

    pvs: int
    seconds: float
    updates: int
    """that the PVs' values say there were, from the first in the log to the last"""
    missing: int
    """of them, that no row of the log has"""
    rows: int


def missing_part() -> str:
    """Which package a soft IOC needs and is not installed; empty when all are."""
    return next((name for name in ("pvxslibs", "aioca") if find_spec(name) is None), "")


def listen(server: Server, facility: Path, folder: Path, pvs: int, seconds: float) -> Listened:
    """An IOC with so many PVs at 10 Hz and its writers, for so long after every PV is connected.

    Raises LoadTestError when one of them does not come up.
    """
    administrator = server.administrator
    names = [f"half_{table}" for table in range(tables(pvs))]
    database, environment = folder / "half.db", own_ports()
    database.write_text(_database(pvs))
    command = ["-m", "pvxslibs.ioc", "-d", str(database)]
    with (
        ioc(command, folder, environment, "IOC Running"),
        loading(server, facility, folder, environment) as writers,
    ):
        began, most = time.monotonic(), _CONNECTED + _A_PV * pvs
        while not all(_connected(server, name) for name in names):
            if writers.poll() is not None:
                raise LoadTestError(
                    "`ringlog load --source ca` ended before every PV of the IOC was connected"
                )
            if time.monotonic() - began > most:
                raise LoadTestError(f"not every PV of the IOC was connected within {most:.0f} s")
            time.sleep(0.2)
        for name in names:
            administrator.execute(sql.SQL("truncate {}").format(sql.Identifier("log", name)))
        time.sleep(seconds)
    updates = missing = rows = 0
    took = 0.0
    for name in names:
        columns = sql.SQL(", ").join(sql.Identifier(f"pv_{n}") for n in range(1, PVS_OF_A_TABLE + 1))
        query = sql.SQL("select extract(epoch from time)::float8, {} from {} order by time, seq_no")
        found = administrator.execute(query.format(columns, sql.Identifier("log", name)), binary=True)
        stored = found.fetchall()
        rows += len(stored)
        if stored:
            # the writers continued until they were ended
            took = max(took, stored[-1][0] - stored[0][0] + 1 / HERTZ)
        for column in zip(*(row[1:] for row in stored), strict=True):
            counts = [int(count) for count in column if count is not None]
            if counts:
                updates += counts[-1] - counts[0] + 1
                missing += sum(later - earlier - 1 for earlier, later in pairwise(counts) if later > earlier)
    return Listened(pvs, took, updates, missing, rows)


def _connected(server: Server, table: str) -> bool:
    query = sql.SQL("select {} from {} order by time desc, seq_no desc limit 1").format(
        sql.SQL(", ").join(sql.Identifier(f"pv_{n}") for n in range(1, PVS_OF_A_TABLE + 1)),
        sql.Identifier("log", table),
    )
    row = server.administrator.execute(query).fetchone()
    return row is not None and None not in row


def _database(pvs: int) -> str:
    """Records that count."""
    return "".join(
        f'record(calc, "HALF:{n}") {{ field(SCAN, ".1 second")'
        + f' field(INPA, "HALF:{n}.VAL") field(CALC, "A+1") }}\n'
        for n in range(1, tables(pvs) * PVS_OF_A_TABLE + 1)
    )
