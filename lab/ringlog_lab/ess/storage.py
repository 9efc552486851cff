"""The storage study of papers/003, table 2: scenarios written, measured, and every frame counted."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.native import command as writing
from ringlog.loadtest.experiment.server import Server, log_rows
from ringlog_lab.ess.points import frame, points_of
from ringlog_lab.ess.scenarios import Scenario
from ringlog_lab.stage import Used, watching

IOC, C = "IOC", "source in C"
_LINES, _THREADS = 8, 2
"""Connections that write frames, at most: the paper had up to 8 IOCs; and threads that serve them."""


@dataclass(frozen=True)
class Written:
    """A scenario as it ran."""

    scenario: Scenario
    seconds: float
    acknowledged: int
    """frames; of an IOC those that its waveforms' numbers say"""
    measured: int
    """of them in these seconds; the others came before, to make plans and fill caches"""
    found: int
    """of the acknowledged ones in the logs"""
    altered: int
    longest: float | None
    """seconds of a call, where the producer calls itself"""
    median: float | None
    disk: int
    """bytes of the logs"""
    used: Used
    source: str = C
    remark: str = ""
    """of another source that was tried"""

    @property
    def megabytes(self) -> float:
        """Stored in a second."""
        stored = self.measured - self.dropped
        return stored * self.scenario.frame / 1e6 / self.seconds

    @property
    def made(self) -> float:
        """The fraction of the requested frames that was made, 0 to 1."""
        return min(1.0, self.measured / self.seconds / self.scenario.frames)

    @property
    def missing(self) -> float:
        """The fraction of the requested frames that was not stored, 0 to 1: as the paper counts them."""
        return max(0.0, 1 - (self.measured - self.dropped) / self.seconds / self.scenario.frames)

    @property
    def dropped(self) -> int:
        """Produced frames that are not in the log."""
        return self.acknowledged - self.found


def write(server: Server, scenario: Scenario, seconds: float, folder: Path) -> Written:
    """Runs a scenario for these seconds and counts its frames. `folder` has the programs in C. Raises
    LoadTestError when the writer fails."""
    before = empty(server, scenario)
    points = folder / f"{scenario.points}-{scenario.type}"
    points.write_bytes(points_of(scenario.type, scenario.points))
    count = len(scenario.tables)
    lines = max(number for number in range(1, _LINES + 1) if count % number == 0)
    tables = Tables(scenario.tables[0].rstrip("0"), count, scenario.columns, rows=2)
    command = [
        *writing(
            *(folder / "tdsload", server.port, tables, lines, seconds, 0),
            version="7.4",
            callers=count,
            rate=scenario.rate * count / lines,
        ),
        *("-k", "wave_", "-F", str(points), "-y", scenario.type[0], "-j", str(min(lines, _THREADS)), "-m"),
    ]
    with ExitStack() as stack:
        client = stack.enter_context(_client(command))
        assert client.stdin is not None
        client.stdin.write(f"{server.password}\n")
        client.stdin.flush()
        _line(client)
        with watching(server, [psutil.Process(client.pid)]) as used:
            client.stdin.write("\n")
            client.stdin.flush()
            _line(client)
        client.stdin.close()
        result = json.loads(_line(client))
    return Written(
        scenario=scenario,
        seconds=result["seconds"],
        acknowledged=result["acknowledged"] * scenario.columns,
        measured=result["calls"] * scenario.columns,
        found=sum(log_rows(server.administrator, table) for table in scenario.tables) * scenario.columns,
        altered=sum(_altered(server, scenario, table) for table in scenario.tables[:1]),
        longest=result["max"],
        median=result["p50"],
        disk=sum(size(server, table) for table in scenario.tables) - before,
        used=used[0],
    )


@contextmanager
def _client(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0
    ) as client:
        try:
            yield client
        except BaseException:
            client.kill()
            raise


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    if line := process.stdout.readline():
        return line
    raise LoadTestError(f"the writer failed: {process.stderr.read().strip().rpartition(chr(10))[2]}")


def empty(server: Server, scenario: Scenario) -> int:
    """Deletes the rows of a scenario's logs; returns the bytes of the emptied logs."""
    for table in scenario.tables:
        server.administrator.execute(sql.SQL("truncate {}").format(sql.Identifier("weeks", table)))
    return sum(size(server, table) for table in scenario.tables)


def size(server: Server, table: str) -> int:
    """Bytes of a log."""
    row = server.administrator.execute(
        "select sum(pg_total_relation_size(relid)) from pg_partition_tree(%s::regclass)", [f"weeks.{table}"]
    ).fetchone()
    assert row is not None
    return int(row[0])


def _altered(server: Server, scenario: Scenario, table: str) -> int:
    """The number of the first rows whose first waveform differs from the sent one."""
    rest = points_of(scenario.type, scenario.points)
    query = sql.SQL("select wave_1 from {} order by time limit 3").format(sql.Identifier("log", table))
    altered = 0
    for number, (stored,) in enumerate(server.administrator.execute(query, binary=True)):
        sent = frame(scenario.type, rest, number)
        altered += [*stored] != [*memoryview(sent).cast("i" if scenario.type == "int" else "d")]
    return altered


def too_much(scenario: Scenario, disk: float, times: float) -> str:
    """The reason why a scenario cannot be produced here; empty if it can be tried. `disk` is in bytes per
    second."""
    if scenario.megabytes * 1e6 <= times * disk:
        return ""
    return (
        f"asks for {scenario.megabytes:,.0f} MB/s, more than {times:g} times the {disk / 1e6:,.0f} MB/s that "
        "this machine's disk takes"
    )


def in_groups(scenarios: Sequence[Scenario]) -> Iterator[list[Scenario]]:
    """Those that share a server."""
    for group in dict.fromkeys(one.group for one in scenarios):
        yield [one for one in scenarios if one.group == group]
