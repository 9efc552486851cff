"""PVs of a real soft IOC, written by `ringlog load`: how many updates reach the log."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import psutil
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.progress import ShowProgress
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.epics import ioc, loading, own_ports
from ringlog_lab.half.published import HERTZ
from ringlog_lab.half.replay import PVS_OF_A_TABLE, tables
from ringlog_lab.stage import cpu_with_children

_CONNECTED, _A_PV = 120.0, 0.02
"""Seconds until all PVs are connected, at least, and more for each PV."""


@dataclass(frozen=True)
class Listened:
    """The outcome of an IOC's updates. Every PV counts its own. CPU in cores."""

    pvs: int
    seconds: float
    updates: int
    """updates according to the PVs' values, from the first in the log to the last"""
    missing: int
    """those of them that are in no row of the log"""
    rate: float
    """updates a second"""
    rows: float
    """a second"""
    ioc: float
    writers: float
    server: float


def missing_part() -> str:
    """The missing package of a soft IOC; empty if all are installed."""
    return next((name for name in ("pvxslibs", "epicscorelibs") if find_spec(name) is None), "")


def listen(
    server: Server, facility: Path, folder: Path, pvs: int, seconds: float, show: ShowProgress
) -> Listened:
    """An IOC with this number of PVs at 10 Hz and its writers, for these seconds after every PV is connected.

    Raises LoadTestError when one of them does not come up.
    """
    names = [f"half_{table}" for table in range(tables(pvs))]
    database, environment = folder / "half.db", own_ports()
    database.write_text(_database(pvs))
    command = ["-m", "pvxslibs.ioc", "-d", str(database)]
    with (
        ioc(command, folder, environment, "IOC Running") as source,
        loading(server, facility, folder, environment) as writers,
    ):
        began, most = time.monotonic(), _CONNECTED + _A_PV * pvs
        waiting = names
        while waiting := [name for name in waiting if not _connected(server, name)]:
            show(0.0, f"{len(names) - len(waiting)} of {len(names)} tables have all their PVs")
            if writers.poll() is not None:
                raise LoadTestError(
                    "`ringlog load --source ca` ended before every PV of the IOC was connected"
                )
            if time.monotonic() - began > most:
                raise LoadTestError(f"not every PV of the IOC was connected within {most:.0f} s")
            time.sleep(0.2)
        processes = [psutil.Process(one.pid) for one in (source, writers)]
        since, before, mark = datetime.now(UTC), [*map(cpu_with_children, processes)], server.mark()
        time.sleep(seconds)
        took = time.monotonic() - mark.moment
        spent = [cpu_with_children(one) - cpu for one, cpu in zip(processes, before, strict=True)]
        end = server.mark()
    found = [_found(server, name, since) for name in names]
    return Listened(
        pvs=pvs,
        seconds=max(one.seconds for one in found),
        updates=sum(one.updates for one in found),
        missing=sum(one.missing for one in found),
        rate=sum(one.updates / one.seconds for one in found if one.updates),
        rows=sum(one.rows / one.seconds for one in found if one.rows),
        ioc=spent[0] / took,
        writers=spent[1] / took,
        server=(end.gateway - mark.gateway + end.postgres - mark.postgres) / (end.moment - mark.moment),
    )


@dataclass(frozen=True)
class _Found:
    """Of a table, from its first row of the run to its last: the writers continued until they were ended."""

    seconds: float
    rows: int
    updates: int
    missing: int


def _found(server: Server, table: str, since: datetime) -> _Found:
    columns = sql.SQL(", ").join(sql.Identifier(f"pv_{n}") for n in range(1, PVS_OF_A_TABLE + 1))
    query = sql.SQL(
        "select extract(epoch from time)::float8, {} from {} where time >= {} order by time, seq_no"
    ).format(columns, sql.Identifier("log", table), since)
    stored = server.administrator.execute(query, binary=True).fetchall()
    updates = missing = 0
    for column in zip(*(row[1:] for row in stored), strict=True):
        counts = [int(count) for count in column if count is not None]
        if counts:
            updates += counts[-1] - counts[0] + 1
            missing += sum(later - earlier - 1 for earlier, later in pairwise(counts) if later > earlier)
    seconds = stored[-1][0] - stored[0][0] + 1 / HERTZ if stored else 0.0
    return _Found(seconds, len(stored), updates, missing)


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
