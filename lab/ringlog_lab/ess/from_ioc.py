"""A scenario from a real soft IOC by `ringlog load --source ca`: each update of each waveform is counted."""

import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import psutil
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.epics import ioc, loading, own_ports
from ringlog_lab.ess.points import frame, points_of
from ringlog_lab.ess.scenarios import Scenario, facility
from ringlog_lab.ess.storage import IOC, Written, empty, size
from ringlog_lab.ess.waveform_ioc import READY
from ringlog_lab.stage import watching

MOST_MEGABYTES, MOST_FRAMES = 20.0, 2_000
"""Bytes per second: a scenario with more is not tried from an IOC that shares the machine."""
_CONNECTED = 30.0
_UPDATES = 4
"""At least, of each waveform."""


def missing_part() -> str:
    """The missing package; empty if all are installed."""
    return next((name for name in ("softioc", "epicscorelibs") if find_spec(name) is None), "")


def tried(scenario: Scenario) -> bool:
    """Whether a scenario is small enough to be tried."""
    return scenario.megabytes <= MOST_MEGABYTES and scenario.frames <= MOST_FRAMES


def keeps_up(written: Written) -> bool:
    """Whether the IOC and its reader reached the requested rate."""
    return written.made > 0.95 and written.dropped <= written.acknowledged / 100


def write_from_ioc(server: Server, scenario: Scenario, folder: Path, seconds: float) -> Written:
    """Runs a scenario for these seconds. Raises LoadTestError when the IOC or the writers do not come up."""
    own = folder / f"{scenario.name}-ioc"
    own.mkdir()
    file = own / "facility.toml"
    file.write_text(facility([scenario]))
    seconds = max(seconds, _UPDATES / scenario.rate)
    before = empty(server, scenario)
    environment = own_ports()
    names = ",".join(signal for table in scenario.tables for signal in scenario.signals(table))
    command = [
        *("-m", "ringlog_lab.ess.waveform_ioc", names),
        *(str(scenario.points), scenario.type, str(scenario.rate)),
    ]
    with ioc(command, own, environment, READY) as source, loading(server, file, own, environment) as writers:
        began = time.monotonic()
        while not all(_connected(server, scenario, table) for table in scenario.tables):
            if writers.poll() is not None or time.monotonic() - began > _CONNECTED:
                raise LoadTestError(f"not every waveform came in {_CONNECTED:g} s")
            time.sleep(0.1)
        for table in scenario.tables:
            server.administrator.execute(sql.SQL("truncate {}").format(sql.Identifier("weeks", table)))
        with watching(server, [psutil.Process(source.pid), psutil.Process(writers.pid)]) as used:
            time.sleep(seconds)
    made = missing = 0
    took = 0.0
    for table in scenario.tables:
        columns = sql.SQL(", ").join(
            sql.SQL("{}[1]").format(sql.Identifier(name)) for name in scenario.column_names(table)
        )
        query = sql.SQL("select extract(epoch from time)::float8, {} from {} order by time, seq_no")
        rows = server.administrator.execute(query.format(columns, sql.Identifier("log", table))).fetchall()
        if rows:
            took = max(took, rows[-1][0] - rows[0][0] + 1 / scenario.rate)
        for column in zip(*(row[1:] for row in rows), strict=True):
            numbers = [int(number) for number in column if number is not None]
            if numbers:
                made += numbers[-1] - numbers[0] + 1
                missing += sum(later - sooner - 1 for sooner, later in pairwise(numbers) if later > sooner)
    return Written(
        scenario=scenario,
        seconds=max(took, 1 / scenario.rate),
        acknowledged=made,
        measured=made,
        found=made - missing,
        altered=sum(_altered(server, scenario, table) for table in scenario.tables[:1]),
        longest=None,
        median=None,
        disk=sum(size(server, table) for table in scenario.tables) - before,
        used=used[0],
        source=IOC,
    )


def _connected(server: Server, scenario: Scenario, table: str) -> bool:
    columns = sql.SQL(", ").join(
        sql.SQL("{} is null").format(sql.Identifier(name)) for name in scenario.column_names(table)
    )
    query = sql.SQL("select {} from {} order by time desc, seq_no desc limit 1")
    row = server.administrator.execute(query.format(columns, sql.Identifier("log", table))).fetchone()
    return row is not None and True not in row


def _altered(server: Server, scenario: Scenario, table: str) -> int:
    """The number of the first rows whose first waveform differs from the IOC's with their number."""
    rest = points_of(scenario.type, scenario.points)
    query = sql.SQL("select wave_1 from {} where wave_1 is not null order by time limit 3")
    altered = 0
    for (stored,) in server.administrator.execute(query.format(sql.Identifier("log", table)), binary=True):
        made = frame(scenario.type, rest, int(stored[0]))
        altered += [*stored] != [*memoryview(made).cast("i" if scenario.type == "int" else "d")]
    return altered
