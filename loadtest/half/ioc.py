"""PVs of a real soft IOC, written by `ringlog load`: how many updates reach the log."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from psycopg import sql

from ringlog.loadtest.bench.server import WRITER, Server
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.ports import free_port
from ringlog.loadtest.half.published import HERTZ
from ringlog.loadtest.half.replay import PVS_OF_A_TABLE, tables

_STARTED, _CONNECTED = 60.0, 120.0


@dataclass(frozen=True)
class Listened:
    """What came of an IOC's updates. Every PV counts its own."""

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
    with _ioc(folder, pvs) as environment, _loading(server, facility, folder, environment) as writers:
        began = time.monotonic()
        while not all(_connected(server, name) for name in names):
            if writers.poll() is not None or time.monotonic() - began > _CONNECTED:
                raise LoadTestError("not every PV of the IOC was connected: see `ringlog load --source ca`")
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
            # the writers went on until they were told to end
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


@contextmanager
def _ioc(folder: Path, pvs: int) -> Iterator[dict[str, str]]:
    """A soft IOC on ports of its own; yields the environment by which clients find it."""
    port, pva, broadcast = (str(free_port()) for _ in range(3))
    environment = {
        "EPICS_CA_SERVER_PORT": port,
        "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1",
        "EPICS_CA_ADDR_LIST": "127.0.0.1",
        "EPICS_CA_AUTO_ADDR_LIST": "NO",
        "EPICS_PVA_SERVER_PORT": pva,
        "EPICS_PVAS_SERVER_PORT": pva,
        "EPICS_PVA_BROADCAST_PORT": broadcast,
        "EPICS_PVAS_BROADCAST_PORT": broadcast,
        "EPICS_PVA_ADDR_LIST": "127.0.0.1",
        "EPICS_PVA_AUTO_ADDR_LIST": "NO",
        "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1",
    }
    database = folder / "half.db"
    database.write_text(
        "".join(
            f'record(calc, "HALF:{n}") {{ field(SCAN, ".1 second")'
            + f' field(INPA, "HALF:{n}.VAL") field(CALC, "A+1") }}\n'
            for n in range(1, tables(pvs) * PVS_OF_A_TABLE + 1)
        )
    )
    log = folder / "ioc.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "pvxslibs.ioc", "-d", str(database)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            env=os.environ | environment,
            process_group=0,
        )
    try:
        began = time.monotonic()
        while "IOC Running" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() - began > _STARTED:
                raise LoadTestError(f"the soft IOC did not start: {log.read_text(errors='replace')[-300:]}")
            time.sleep(0.1)
        yield environment
    finally:
        process.kill()
        process.wait()


@contextmanager
def _loading(
    server: Server, facility: Path, folder: Path, environment: dict[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    url = f"tds://{WRITER}@{server.host}:{server.port}"
    command = [sys.executable, "-P", "-m", "ringlog", "load", "--facility", str(facility), "--url", url]
    own = {"RINGLOG_PASSWORD": server.password, "RINGLOG_SPOOL": str(folder / "spool")}
    with (folder / "load.log").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--source", "ca"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=os.environ | environment | own,
            process_group=0,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
