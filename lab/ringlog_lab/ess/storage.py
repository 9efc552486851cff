"""The storage study of papers/003, table 2: scenarios written, measured, and every frame counted."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psutil
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.running import start_load
from ringlog.loadtest.experiment.server import WRITER, Server
from ringlog_lab.ess.producer import Options, Produced, frame, points_of
from ringlog_lab.ess.scenarios import Scenario
from ringlog_lab.stage import Used, watching

IOC, PYTHON = "IOC", "Python source"
_PRODUCERS = 4
"""Processes that make frames, at most: the paper had up to 8 IOCs."""


@dataclass(frozen=True)
class Written:
    """A scenario as it ran."""

    scenario: Scenario
    seconds: float
    acknowledged: int
    """frames; of an IOC those that its waveforms' numbers say"""
    found: int
    """of them in the logs"""
    altered: int
    longest: float | None
    """seconds of a call, where the producer calls itself"""
    median: float | None
    disk: int
    """bytes of the logs"""
    used: Used
    source: str = PYTHON
    remark: str = ""
    """of another source that was tried"""

    @property
    def megabytes(self) -> float:
        """Stored in a second."""
        return self.found * self.scenario.frame / 1e6 / self.seconds

    @property
    def made(self) -> float:
        """The fraction of the requested frames that was made, 0 to 1."""
        return min(1.0, self.acknowledged / self.seconds / self.scenario.frames)

    @property
    def dropped(self) -> int:
        """Produced frames that are not in the log."""
        return self.acknowledged - self.found


def write(server: Server, scenario: Scenario, seconds: float) -> Written:
    """Runs a scenario for these seconds and counts its frames. Raises LoadTestError when a producer fails."""
    before = empty(server, scenario)
    widths = [scenario.columns] * len(scenario.tables)
    widths[-1] = scenario.waveforms - sum(widths[:-1])
    count = min(_PRODUCERS, len(widths))
    with ExitStack() as stack:
        producers = [
            stack.enter_context(_producer(server, scenario, number, count, widths, seconds))
            for number in range(count)
        ]
        for one in producers:
            _line(one)
        clients = [psutil.Process(one.pid) for one in producers]
        with watching(server, clients) as used:
            for one in producers:
                assert one.stdin is not None
                one.stdin.write("go\n")
                one.stdin.flush()
            produced = [Produced(**json.loads(_line(one))) for one in producers]
    rows = [0] * len(widths)
    for number, one_of in enumerate(produced):
        rows[number::count] = one_of.rows
    latencies = sorted(latency for one_of in produced for latency in one_of.latencies)
    acknowledged = sum(row * width for row, width in zip(rows, widths, strict=True))
    stored = [_rows(server, table) for table in scenario.tables]
    return Written(
        scenario=scenario,
        seconds=max(one_of.seconds for one_of in produced),
        acknowledged=acknowledged,
        found=sum(row * width for row, width in zip(stored, widths, strict=True)),
        altered=sum(_altered(server, scenario, table) for table in scenario.tables[:1]),
        longest=latencies[-1],
        median=latencies[len(latencies) // 2],
        disk=sum(size(server, table) for table in scenario.tables) - before,
        used=used[0],
    )


def _producer(
    server: Server, scenario: Scenario, number: int, count: int, widths: Sequence[int], seconds: float
) -> "subprocess.Popen[str]":
    options = Options(
        host=server.host,
        port=server.port,
        user=WRITER,
        tables=[*scenario.tables[number::count]],
        columns=[*widths[number::count]],
        points=scenario.points,
        type=scenario.type,
        rate=scenario.rate,
        seconds=seconds,
    )
    return start_load("ringlog_lab.ess.producer", options.argument(), server.password)


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    if line := process.stdout.readline():
        return line
    raise LoadTestError(f"a producer failed: {process.stderr.read().strip().rpartition(chr(10))[2]}")


def _rows(server: Server, table: str) -> int:
    query = sql.SQL("select count(*) from {}").format(sql.Identifier("log", table))
    row = server.administrator.execute(query).fetchone()
    assert row is not None
    return int(row[0])


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
