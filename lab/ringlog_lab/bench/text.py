"""Texts: the cost of reading and translating T-SQL for a client, beside psycopg that sends PostgreSQL's SQL
and beside the client alone, and for writers."""

import itertools
import re
import struct
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import psycopg

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import READER, Server
from ringlog.schema import session
from ringlog_lab.bench.texts import sending
from ringlog_lab.native_load import TDS5, Load, Stand
from ringlog_lab.record import Disturbed

SENDERS, RATE = 20, 1000.0
"""connections that send different texts, and how many texts a second all of them together"""
PUTS = 50.0
"""calls a second of the writer meanwhile"""
PYMSSQL, CANNED, PSYCOPG = "tds74", "canned", "psycopg"
"""contenders: pymssql to the gateway, pymssql to a proxy that answers a repeated text itself, and psycopg to
PostgreSQL"""
_STATEMENTS = 20
"""of a batch"""
_WIDE = 200


@dataclass(frozen=True)
class Usual:
    """A usual text, for the gateway (`tsql`) and for psycopg (`sql`); `{n}` is another number each time."""

    key: str
    title: str
    tsql: str
    sql: str

    @property
    def changes(self) -> bool:
        return "{n}" in self.tsql


@dataclass(frozen=True)
class Timing:
    """A text sent again and again by one client. Times in seconds."""

    text: str
    contender: str
    round: int
    count: int
    p50: float
    p99: float


@dataclass(frozen=True)
class Compiling:
    """The gateway's count of new texts, and its seconds for each."""

    text: str
    count: int
    seconds: float


def usual(tables: Tables) -> tuple[Usual, ...]:
    """The measured texts; all read the first of the tables."""
    table, columns = tables.names[0], tables.column_names
    wide = ", ".join(columns[:_WIDE])
    one = f"select seq_no, {columns[0]}, {columns[-1]} from {{schema}}{table} where seq_no = {{key}}"
    all_columns = f"select {wide} from {{schema}}{table} where seq_no = {{key}}"
    join = (
        f"select o.seq_no, o.{columns[0]}, l.{columns[0]} from {{schema}}{table} o"
        f" join {{log}}{table} l on l.seq_no = o.seq_no and l.time = o.time where o.seq_no = {{key}}"
    )

    def of(key: str, title: str, text: str, number: str, separator: str = "") -> Usual:
        tsql = text.format(schema="online..", log="log..", key=number)
        sql = text.format(schema="online.", log="log.", key=number)
        if separator:
            tsql, sql = (separator.join([each] * _STATEMENTS) for each in (tsql, sql))
        return Usual(key, title, tsql, sql)

    return (
        of("key", "select by key", one, "7"),
        of("key_n", "select by key, another key each time", one, "{n}"),
        of("join", "a join", join, "7"),
        of("join_n", "a join, another key each time", join, "{n}"),
        of("wide", f"{len(columns[:_WIDE])} columns", all_columns, "7"),
        of("wide_n", f"{len(columns[:_WIDE])} columns, another key each time", all_columns, "{n}"),
        of("batch", f"a batch of {_STATEMENTS} statements", one, "7", ";\n"),
        of("batch_n", f"a batch of {_STATEMENTS} statements, another key each time", one, "{n}", ";\n"),
    )


def measure_texts(
    stand: Stand, tables: Tables, *, seconds: float, rounds: int, doing: Callable[[str], None]
) -> Iterator[Timing]:
    """Each usual text by pymssql and by psycopg, alternating, for the same seconds each."""
    server = stand.server
    numbers = itertools.cycle(range(1, tables.rows + 1))
    with (
        closing(server.by_pymssql()) as tds,
        _repeating(stand) as port,
        closing(server.by_pymssql(port)) as canned,
        closing(session.connect(server.conninfo(READER), autocommit=True)) as direct,
    ):
        senders = {PYMSSQL: _by_pymssql(tds), CANNED: _by_pymssql(canned), PSYCOPG: _by_psycopg(direct)}
        for text in usual(tables):
            answers = {
                key: [_singles(send(_written(text, key, 7))) for _ in range(2)]
                for key, send in senders.items()
            }
            if answers[PYMSSQL] != answers[PSYCOPG]:
                raise LoadTestError(f"{text.title}: the gateway answers otherwise than PostgreSQL")
            if answers[CANNED] != answers[PYMSSQL]:
                raise LoadTestError(f"{text.title}: the proxy does not repeat the gateway's answer")
        for round in range(rounds):
            for text in usual(tables):
                order = [one for one in senders.items() if one[0] != CANNED or not text.changes]
                for key, send in order if round % 2 == 0 else reversed(order):
                    doing(f"{text.title}, {key}")
                    yield _time(text, key, round, send, numbers, seconds)


@contextmanager
def _repeating(stand: Stand) -> Iterator[int]:
    """The port of a proxy before the gateway, for one client: it answers repeated requests by itself."""
    command = [str(stand.programs / "repeating_proxy"), stand.server.host, str(stand.server.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            assert proxy.stdout is not None
            port = proxy.stdout.readline()
            if not port:
                raise LoadTestError("the proxy that repeats answers does not start")
            yield int(port)
        finally:
            proxy.kill()


def _singles(rows: list[Any]) -> list[Any]:
    """Rows with numbers rounded to real: psycopg has the digits of PostgreSQL's text."""

    def single(value: Any) -> Any:
        return struct.pack("f", value) if isinstance(value, float) else value

    return [tuple(map(single, row)) for row in rows]


def _time(
    text: Usual,
    key: str,
    round: int,
    send: Callable[[str], list[Any]],
    numbers: Iterator[int],
    seconds: float,
) -> Timing:
    times: list[float] = []
    for _ in range(20):  # plans are made
        send(_written(text, key, next(numbers)))
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end or len(times) < 10:
        written = _written(text, key, next(numbers))
        began = time.perf_counter()
        send(written)
        times.append(time.perf_counter() - began)
    cuts = quantiles(times, n=100)
    return Timing(text.key, key, round, len(times), cuts[49], cuts[98])


def _written(text: Usual, contender: str, number: int) -> str:
    return (text.sql if contender == PSYCOPG else text.tsql).replace("{n}", str(number))


def measure_compiling(stand: Stand, tables: Tables, doing: Callable[[str], None]) -> Iterator[Compiling]:
    """New texts: the gateway's time for reading and translating them."""
    numbers = itertools.count()
    with closing(stand.server.by_pymssql()) as connection:
        send = _by_pymssql(connection)
        for text in usual(tables)[::2]:
            doing(f"compiling: {text.title}")
            before = _compiled(stand.server)
            for _ in range(200):
                # other names make another text, even without an effect
                send(f"/* {next(numbers)} */ {text.tsql}")
            after = _compiled(stand.server)
            count = int(after[0] - before[0])
            if count < 200:
                raise LoadTestError(f"{text.title}: only {count} of 200 different texts were compiled")
            yield Compiling(text.key, count, (after[1] - before[1]) / count)


def _compiled(server: Server) -> tuple[float, float]:
    """The number of texts compiled by the gateway, and the seconds for it."""
    with urllib.request.urlopen(server.metrics, timeout=10) as answer:
        metrics = answer.read().decode()

    def figure(name: str) -> float:
        found = re.search(rf"^\w*batch_compilation_?\w*_{name} (\S+)$", metrics, re.MULTILINE)
        if found is None:
            raise LoadTestError(f"the gateway's metrics have no batch_compilation …_{name}")
        return float(found[1])

    return figure("count"), figure("sum")


def measure_during_texts(
    stand: Stand, written: Tables, read: Tables, *, seconds: float, rounds: int, doing: Callable[[str], None]
) -> Iterator[Disturbed]:
    """A writer at PUTS calls a second, alone and during texts of SENDERS connections, which all differ."""
    for round in range(rounds):
        for rate in (0.0, RATE) if round % 2 == 0 else (RATE, 0.0):
            doing(f"a writer and {rate:.0f} texts/s")
            load = Load(TDS5, written, 1, seconds, rate=PUTS)
            if rate == 0.0:
                yield Disturbed("texts", 0.0, stand.run(load, "text", round))
                continue
            with sending(stand.server, read.names[0], read.column_names, SENDERS, rate) as sent:
                sent()
                began = time.monotonic()
                writing = stand.run(load, "text", round)
                yield Disturbed("texts", sent() / (time.monotonic() - began), writing)


def _by_pymssql(connection: Any) -> Callable[[str], list[Any]]:
    cursor = connection.cursor()

    def send(text: str) -> list[Any]:
        cursor.execute(text)
        rows = [*cursor.fetchall()]
        while cursor.nextset():
            rows += cursor.fetchall()
        return rows

    return send


def _by_psycopg(connection: psycopg.Connection[Any]) -> Callable[[str], list[Any]]:
    cursor = connection.cursor()

    def send(text: str) -> list[Any]:
        cursor.execute(text.encode())
        rows = cursor.fetchall()
        while cursor.nextset():
            rows += cursor.fetchall()
        return rows

    return send


def median_time(timings: Sequence[Timing], text: str, contender: str) -> float | None:
    """The median over the rounds of a contender's time for a text."""
    times = [one.p50 for one in timings if (one.text, one.contender) == (text, contender)]
    return median(times) if times else None


def median_ratio(timings: Sequence[Timing], text: str, contender: str = PYMSSQL) -> float | None:
    """A contender's median time for a text ÷ psycopg's."""
    ours, theirs = (median_time(timings, text, key) for key in (contender, PSYCOPG))
    return None if ours is None or theirs is None else ours / theirs
