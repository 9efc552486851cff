"""HALF's load (papers/002) in ringlog's logs and, where it is installed, in TimescaleDB, in turns."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

import numpy as np
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import Server
from ringlog_lab.bench.half_forms import (
    BIN,
    CHANNELS,
    HERTZ,
    CompressedItems,
    Form,
    HalfLoad,
    Hypertables,
    Items,
    Log,
)
from ringlog_lab.bench.history import catch_up, half_column, no_other_summaries
from ringlog_lab.peers.timescaledb import Timescaledb
from ringlog_lab.record import Compared

_ONE, _SOME = (1235,), tuple(range(700, 800))
"""Channels that are read: one with all its bits in use, and all of a table."""
_WARM = 7
"""After five executions PostgreSQL chooses the final plan of a prepared statement."""


def measure_half_load(
    server: Server,
    timescaledb: Timescaledb | None,
    minutes: int,
    rounds: int,
    doing: Callable[[str], None],
) -> Iterator[Compared]:
    """Figures of each form, for so many minutes of the load. Raises LoadTestError for a wrong
    answer."""
    doing("making HALF's load")
    count = minutes * 60 * HERTZ
    begin = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes + 1)
    load = HalfLoad(np.column_stack([half_column(channel, count) for channel in range(CHANNELS)]), begin)
    forms: list[Form] = [Log(load, server)]
    if timescaledb is not None:
        there = (load, timescaledb.administrator, timescaledb.postmaster)
        forms += [Items(*there), CompressedItems(*there), Hypertables(*there)]
    catch_up(server)
    with no_other_summaries(server):
        yield from _measured(forms, load, rounds, doing)


def _measured(
    forms: Sequence[Form], load: HalfLoad, rounds: int, doing: Callable[[str], None]
) -> Iterator[Compared]:
    for form in forms:
        form.create()
    yield from _loading(forms, load, doing)
    for form in forms:
        doing(f"{form.title}, summaries")
        began, spent, own = time.perf_counter(), form.cpu(), time.process_time()
        form.summarise()
        took = time.perf_counter() - began
        spent = form.cpu() - spent + (time.process_time() - own if isinstance(form, Log) else 0.0)
        yield Compared(form.title, f"summaries of {BIN} s made", took, "s")
        yield Compared(form.title, f"summaries of {BIN} s made, CPU", spent, "s")
        form.vacuum()
        _check(form)
    questions: dict[str, tuple[int, Callable[[Form], list[list[sql.Composed]]]]] = {
        "all values of 1 channel": (len(load.values), lambda form: [form.rows(_ONE)]),
        "all values of 100 channels": (0, lambda form: [form.rows(_SOME)]),
        f"min max mean of {BIN} s, 1 channel, from rows": (load.bins, lambda form: [form.spans(_ONE)]),
        f"min max mean of {BIN} s, 100 channels, from rows": (0, lambda form: [form.spans(_SOME)]),
        f"min max mean of {BIN} s, 1 channel, from summaries": (load.bins, lambda form: [form.stored(_ONE)]),
        f"min max mean of {BIN} s, 100 channels, from summaries": (0, lambda form: [form.stored(_SOME)]),
        f"min max mean of {BIN} s, 1 channel, with what is not summarised": (
            load.bins,
            lambda form: [form.summaries(_ONE)] if isinstance(form, Log) else [],
        ),
        f"min max mean of {BIN} s, 100 channels, with what is not summarised": (
            0,
            lambda form: [form.summaries(_SOME)] if isinstance(form, Log) else [],
        ),
        "newest value of 2,000 channels": (0, lambda form: form.newest()),
    }
    for what, (expected, ways) in questions.items():
        doing(what)
        for form in forms:
            times = [_median_time(form, each, rounds, expected) for each in ways(form)]
            if times:
                yield Compared(form.title, what, min(times), "ms")


def _loading(forms: Sequence[Form], load: HalfLoad, doing: Callable[[str], None]) -> Iterator[Compared]:
    """Loads all of them, a minute of data at a time: each a transaction."""
    took = dict.fromkeys((form.title for form in forms), 0.0)
    for first in range(0, len(load.values), 60 * HERTZ):
        for form in forms:
            doing(f"{form.title}, loading")
            sent = [*form.copies(first, first + 60 * HERTZ)]
            began = time.perf_counter()
            with form.connection.transaction(), form.connection.cursor() as cursor:
                for text, data in sent:
                    with cursor.copy(text) as copy:
                        copy.write(data)
            took[form.title] += time.perf_counter() - began
    for form in forms:
        doing(f"{form.title}, compressing")
        began = time.perf_counter()
        form.compress()
        took[form.title] += time.perf_counter() - began
        form.vacuum()
        yield Compared(form.title, "loaded", load.values.size / took[form.title] / 1e6, "M values/s")
        yield Compared(form.title, "a value on the disk", form.size() / load.values.size, "bytes")


def _median_time(form: Form, queries: Sequence[sql.Composed], rounds: int, expected: int) -> float:
    """Median milliseconds until all answers have arrived in PostgreSQL's binary form, not decoded. The
    queries are prepared before, as by programs that repeat a query."""
    server = form.connection.pgconn
    names = []
    for number, query in enumerate(queries):
        names.append(f"asked_{number}".encode())
        server.prepare(names[-1], query.as_bytes(form.connection))
    took = []
    for round in range(-_WARM, rounds):
        began = time.perf_counter()
        rows = 0
        for name in names:
            result = server.exec_prepared(name, [], result_format=1)
            if not result.ntuples:
                raise LoadTestError(
                    f"{form.title}: {result.error_message.decode(errors='replace') or 'no rows'}"
                )
            rows += result.ntuples
        if round >= 0:
            took.append(1e3 * (time.perf_counter() - began))
        if expected and rows != expected:
            raise LoadTestError(f"{form.title}: {rows} rows instead of {expected}")
    for name in names:
        server.exec_(b"deallocate " + name)
    return median(took)


def _check(form: Form) -> None:
    """Compares the summaries of a channel with its values."""
    wanted = form.load.values[:, _ONE[0]].reshape(form.load.bins, BIN * HERTZ).min(axis=1)
    for query in (*form.summaries(_ONE), *form.stored(_ONE)):
        cursor = form.connection.execute(query)
        names = [one.name for one in cursor.description or ()]
        found = [row[names.index("min")] for row in cursor.fetchall()]
        if found != wanted.tolist():
            raise LoadTestError(f"{form.title}: the summaries of a channel are not those of its values")
