"""A load by the ct-library writer of ringlog.clients, a process for each table, as in papers/004.

It writes `real` columns only, so it has separate tables of the same widths as the facility's.
"""

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil
from psycopg import sql

from ringlog.loader.schedule import SECOND
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import WRITER, Server
from ringlog.loadtest.spring8 import native
from ringlog.loadtest.spring8.results import (
    CTLIB,
    KILOBYTE,
    VALUE_BYTES,
    WIDE,
    Calls,
    Check,
    Run,
    TableFigures,
)
from ringlog.loadtest.spring8.sampling import Sampler
from ringlog.loadtest.spring8.scene import Experiment
from ringlog.loadtest.spring8.target import Target

# Seconds between two lines of counts, in a short load and in one of more than a minute.
_LINES, _LINES_OF_LONG = 0.2, 1.0
# Seconds until all writers write, and for their last answers.
_BEGUN, _ENDED = 60.0, 60.0


@dataclass
class CtlibWriter:
    """A running writer and its output so far."""

    tables: Tables
    process: subprocess.Popen[str]
    times: list[float] = field(default_factory=list)
    """seconds since 1970, of each line of counts"""
    stored: list[int] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    """seconds of all calls together"""
    longest: list[float] = field(default_factory=list)
    """of the calls since the line before, in seconds"""
    repeated: int = 0
    """repeated calls"""
    error_text: str = ""
    writing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for line in self.process.stdout:
            counts = json.loads(line)
            self.times.append(counts["time"])
            self.stored.append(counts["stored"])
            self.waited.append(counts["waited"])
            self.longest.append(counts["longest"])
            self.repeated = counts["repeated"]
            self.writing.set()
        self.error_text = self.process.stderr.read().strip()
        self.writing.set()

    def ended(self) -> bool:
        """Whether it has ended, by itself or by Ctrl-C."""
        return self.process.poll() is not None

    def end(self) -> None:
        """Ends it after its current row, and reads its last line. Raises LoadTestError if a row was refused
        or has no answer."""
        self.process.terminate()
        code = self.process.wait(_ENDED)
        self._listener.join()
        if code != 0:
            raise LoadTestError(f"ct-library writers: {self.error_text}")

    def between(self, begin: float, end: float) -> TableFigures:
        """Its figures between two moments."""
        rows, waited = (
            float(np.interp(end, self.times, figures) - np.interp(begin, self.times, figures))
            for figures in (self.stored, self.waited)
        )
        if not rows:
            raise LoadTestError(f"a ct-library writer stored no row in {end - begin:.1f} s")
        longest = max(one for time, one in zip(self.times, self.longest, strict=True) if begin < time)
        return TableFigures(
            self.tables.prefix, self.tables.columns, rows / (end - begin), waited / rows, longest
        )


@contextmanager
def _writers(
    program: Path, server: Server, groups: Sequence[Tables], seconds: float
) -> Iterator[list[CtlibWriter]]:
    writers = []
    lines = str(_LINES if seconds <= 60 else _LINES_OF_LONG)
    try:
        for tables in groups:
            command = [program, "-c", "0", "-i", lines, f"{server.host}:{server.port}", WRITER]
            process = subprocess.Popen(
                [*map(str, command), tables.names[0], str(tables.rows), *tables.column_names],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            writers.append(CtlibWriter(tables, process))
            assert process.stdin is not None
            process.stdin.write(f"{server.password}\n")
            process.stdin.close()
        yield writers
    finally:
        for writer in writers:
            if writer.process.poll() is None:
                writer.process.kill()
            writer.process.wait()


def ctlib_run(
    experiment: Experiment, target: Target, program: Path, label: str, groups: Sequence[Tables]
) -> Run:
    """A load by a writer for each table (each group has one), at the highest rate."""
    assert target.server is not None
    before = {tables: native.logged(target.server, tables) for tables in groups}
    since = datetime.now(UTC)
    with ExitStack() as stack:
        experiment.steps.say(f"{len(groups)} ct-library writers log in")
        writers = stack.enter_context(_writers(program, target.server, groups, experiment.seconds))
        for writer in writers:
            if not writer.writing.wait(_BEGUN):
                raise LoadTestError(f"a ct-library writer stored nothing in {_BEGUN:g} s")
            if writer.ended():
                writer.end()
        sampler = Sampler(target, [psutil.Process(writer.process.pid) for writer in writers])
        stack.callback(sampler.close)
        first, last = experiment.watch(
            sampler,
            f"{len(groups)} ct-library writers",
            lambda: f"{sum(writer.stored[-1] for writer in writers):,} rows",
            over=lambda: any(writer.ended() for writer in writers),
        )
        began, end = first / SECOND, last / SECOND
        for writer in writers:
            writer.end()
    experiment.steps.say("Looking for every acknowledged row")
    stored = {writer.tables: writer.stored[-1] for writer in writers}
    check = _check(target.server, before, stored, since)
    tables = [writer.between(began, end) for writer in writers]
    return experiment.run(
        label,
        first,
        sampler.samples,
        clients=CTLIB,
        description=f"{len(groups)} ct-library writers (C), TDS 5.0, {len(groups)} processes",
        users=len(groups),
        logged_in=len(groups),
        columns=sum(one.columns for one in tables) / len(tables),
        seconds=end - began,
        rows=sum(one.rows for one in tables),
        kilobytes=sum(one.rows * one.columns for one in tables) * VALUE_BYTES / KILOBYTE,
        writes=replace(_together(tables, end - began), failed=sum(one.repeated for one in writers)),
        wide=_together([one for one in tables if one.columns == WIDE], end - began),
        tables=tables,
        check=check,
        by_second=_by_second(writers, began, end),
        complaint=next((one.error_text for one in writers if one.error_text), ""),
    )


def _together(tables: Sequence[TableFigures], seconds: float) -> Calls:
    if not tables:
        return Calls(0, 0, None, None, None, None)
    rows = sum(one.rows for one in tables)
    return Calls(
        answered=round(rows * seconds),
        failed=0,
        mean=sum(one.mean * one.rows for one in tables) / rows,
        p50=None,
        p99=None,
        longest=max(one.longest for one in tables),
    )


def _by_second(writers: Sequence[CtlibWriter], began: float, end: float) -> list[tuple[int, float]]:
    """Rows acknowledged in each second, and the longest time of one; the last second may be a part of one."""
    edges = np.append(np.arange(began, end), end)
    rows, longest = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for writer in writers:
        rows += np.diff(np.interp(edges, writer.times, writer.stored))
        seconds = np.searchsorted(edges, writer.times) - 1
        inside = (seconds >= 0) & (seconds < len(longest))
        np.maximum.at(longest, seconds[inside], np.array(writer.longest)[inside])
    return [(round(float(count)), float(most)) for count, most in zip(rows, longest, strict=True)]


def _check(server: Server, before: dict[Tables, int], stored: dict[Tables, int], since: datetime) -> Check:
    """Whether the logs have every acknowledged row besides those of before, the rings the latest of each
    seq_no, and all rows since then the values that the writer sends (`read_out` in writer.c)."""
    in_logs = stale = altered = 0
    for tables in stored:
        (name,) = tables.names
        rows, filled, latest = native.count_rows(server.administrator, name)
        in_logs += rows - before[tables]
        stale += filled - latest
        altered += _altered(server, tables, since)
    expected = sum(stored.values())
    return Check.of_every_row(expected, in_logs, stale, altered)


def _altered(server: Server, tables: Tables, since: datetime) -> int:
    """Rows of the log, since then, with other values than were sent."""
    columns = tables.column_names
    query = sql.SQL(
        "select count(*) from {log} where time >= {since} and ({stored}) is distinct from ({sent})"
    ).format(
        since=sql.Literal(since),
        log=sql.Identifier("log", tables.names[0]),
        stored=sql.SQL(", ").join(map(sql.Identifier, columns)),
        sent=sql.SQL(", ").join(
            sql.SQL("({column} + seq_no / 4096.0)::real").format(column=sql.Literal(column))
            for column in range(len(columns))
        ),
    )
    row = server.administrator.execute(query).fetchone()
    assert row is not None
    return int(row[0])
