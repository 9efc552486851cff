"""The read benchmark that papers/000 announces: parallel clients with a mix of queries."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg import sql

from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.server import READER, Server
from ringlog.schema import session
from ringlog.schema.layout import OWNER
from ringlog.schema.relations.partitions import Week

SIGNALS = 200
_TABLES, _WIDTH = 4, 50
_YEAR, _DAY, _HOUR = timedelta(days=365), timedelta(days=1), timedelta(hours=1)
_OLDER = 360
"""Ratio of the intervals between samples in the year and in its last day: every 6 hours, and every minute."""
POINTS = 1000
FACILITY = "".join(
    f'\n[[table]]\nname = "beam_{number}"\nrows = 100\ncycle = 60.0\n'
    f'[[table.column]]\nname = "value_{{n}}"\ncount = {_WIDTH}\ntype = "double"\n'
    for number in range(_TABLES)
)
NARROW = ("plain", "declared")
"""CSS's table without and with partitions, and ringlog's own."""
OWN = "ringlog"
MIX = {"last hours of 5 signals": 50, "a week of one": 30, "a year of one": 5, "newest of 200": 15}
"""Queries of a hundred."""


@dataclass(frozen=True)
class Read:
    """The results of a target's clients. Times in seconds."""

    target: str
    clients: int
    times: Mapping[str, Sequence[float]]
    """of each kind of query"""
    cold: Mapping[str, float]
    """of the first query of each kind with empty buffers; empty where they cannot be emptied"""
    rows: int

    @property
    def all(self) -> list[float]:
        return sorted(one for each in self.times.values() for one in each)

    def within(self, seconds: float) -> float:
        """The part of the queries that took at most these seconds, 0 to 1."""
        return sum(one <= seconds for one in self.all) / len(self.all)


def fill(server: Server, every: float) -> int:
    """Makes a year of 200 signals in each target, of the last day a sample each `every` seconds; returns the
    values in each. Raises LoadTestError when two targets have other numbers of values."""
    administrator, now = server.administrator, datetime.now(UTC).replace(second=0, microsecond=0)
    moments = (
        "(select moment from generate_series({year}, {day} - {old}, {old}) as moment union all select "
        "moment from generate_series({day}, {now}, {new}) as moment) as each"
    )
    known = {
        "year": sql.Literal(now - _YEAR),
        "day": sql.Literal(now - _DAY),
        "now": sql.Literal(now),
        "old": sql.Literal(timedelta(seconds=_OLDER * every)),
        "new": sql.Literal(timedelta(seconds=every)),
    }
    counts = []
    for table in NARROW:
        where = sql.Identifier("css", table)
        administrator.execute(sql.SQL("truncate {}").format(where))
        administrator.execute(
            sql.SQL(
                "insert into {} (channel_id, smpl_time, nanosecs, severity_id, status_id, float_val)"
                " select channel, moment at time zone 'UTC', 0, 1, 1, channel + extract(epoch from moment)"
                f" from generate_series(1, {SIGNALS}) as channel, {moments}"
            ).format(where, **known)
        )
        administrator.execute(sql.SQL("vacuum analyze {}").format(where))
        counts.append(_count(server, where))
    values = sql.SQL(", ").join(
        sql.SQL("{} + extract(epoch from moment)").format(sql.Literal(index)) for index in range(_WIDTH)
    )
    names = sql.SQL(", ").join(sql.Identifier(f"value_{index + 1}") for index in range(_WIDTH))
    own = 0
    for number in range(_TABLES):
        table = f"beam_{number}"
        log = sql.Identifier("weeks", table)
        _make_weeks(server, table, now - _YEAR, now)
        administrator.execute(
            sql.SQL(f"insert into {{}} (seq_no, time, {{}}) select 1, moment, {{}} from {moments}").format(
                log, names, values, **known
            )
        )
        ring = sql.SQL("update {} set time = {}, value_1 = 0 where seq_no = 1")
        administrator.execute(ring.format(sql.Identifier("online", table), now))
        administrator.execute(sql.SQL("vacuum analyze {}").format(log))
        own += _count(server, log) * _WIDTH
    if {own} != {*counts}:
        raise LoadTestError(f"the targets have {own:,} and {counts} values")
    administrator.execute(sql.SQL("grant usage on schema css to {}").format(sql.Identifier(READER)))
    administrator.execute(
        sql.SQL("grant select on all tables in schema css to {}").format(sql.Identifier(READER))
    )
    return own


def _make_weeks(server: Server, table: str, since: datetime, until: datetime) -> None:
    """The partitions that housekeeping would have made over time."""
    server.administrator.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
    week = Week.of(since)
    while week.start < Week.of(until).start:
        server.administrator.execute(
            sql.SQL("create table if not exists {} partition of {} for values from ({}) to ({})").format(
                sql.Identifier("log", week.partition(table)),
                sql.Identifier("weeks", table),
                week.start,
                week.end,
            )
        )
        week = Week(week.end)
    server.administrator.execute("reset role")


def _count(server: Server, where: sql.Identifier) -> int:
    row = server.administrator.execute(sql.SQL("select count(*) from {}").format(where)).fetchone()
    assert row is not None
    return int(row[0])


def reading(server: Server, clients: int, seconds: float) -> Iterator[Read]:
    """Each target, by this number of clients at once, for these seconds."""
    for target in (*NARROW, OWN):
        asked = _own() if target == OWN else _narrow(target)
        yield Read(target, clients, *_load(server, asked, clients, seconds))


def _load(
    server: Server, asked: Mapping[str, Callable[[random.Random], sql.Composed]], clients: int, seconds: float
) -> tuple[dict[str, list[float]], dict[str, float], int]:
    cold: dict[str, float] = {}
    with session.connect(server.conninfo(READER), autocommit=True) as connection:
        for kind, query in asked.items():
            if _emptied(server):
                cold[kind] = _timed(connection, query(random.Random(kind)))[0]
    times: dict[str, list[float]] = {kind: [] for kind in asked}
    failures: list[Exception] = []
    lock = threading.Lock()
    rows = 0
    until = time.monotonic() + seconds

    def client(number: int) -> None:
        nonlocal rows
        dice = random.Random(number)
        try:
            with session.connect(server.conninfo(READER), autocommit=True) as connection:
                while time.monotonic() < until:
                    (kind,) = dice.choices([*MIX], [*MIX.values()])
                    took, got = _timed(connection, asked[kind](dice))
                    with lock:
                        times[kind].append(took)
                        rows += got
        except (psycopg.Error, LoadTestError) as error:
            failures.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failures:
        raise LoadTestError(f"a reader failed: {failures[0]}")
    return times, cold, rows


def _timed(connection: psycopg.Connection, query: sql.Composed) -> tuple[float, int]:
    """Seconds until all of a result is here, in PostgreSQL's binary form, not decoded; and its rows."""
    began = time.perf_counter()
    result = connection.pgconn.exec_params(query.as_bytes(connection), [], result_format=1)
    took = time.perf_counter() - began
    if not result.ntuples:
        raise LoadTestError(result.error_message.decode(errors="replace").strip() or "a query found no rows")
    return took, result.ntuples


def _emptied(server: Server) -> bool:
    """Empties PostgreSQL's buffers, not the kernel's; False if that is impossible."""
    with suppress(psycopg.Error):
        server.administrator.execute("create extension if not exists pg_buffercache")
        server.administrator.execute("select pg_buffercache_evict_all()")
        return True
    return False


def _narrow(table: str) -> dict[str, Callable[[random.Random], sql.Composed]]:
    where = sql.Identifier("css", table)
    local = sql.SQL("(now() at time zone 'UTC')")

    def samples(channels: Sequence[int], span: timedelta) -> sql.Composed:
        return sql.SQL(
            "select channel_id, smpl_time, float_val, severity_id, status_id from {} where channel_id = "
            "any({}) and smpl_time >= {} - {}::interval order by channel_id, smpl_time"
        ).format(where, [*channels], local, span)

    def year(dice: random.Random) -> sql.Composed:
        return sql.SQL(
            "select width_bucket(extract(epoch from smpl_time), {}, {}, {}) as point, count(*), "
            "min(float_val), max(float_val), avg(float_val) from {} where channel_id = {} and smpl_time >= "
            "{} - {}::interval group by point order by point"
        ).format(*_ends(), POINTS, where, dice.randint(1, SIGNALS), local, _YEAR)

    def newest(_: random.Random) -> sql.Composed:
        return sql.SQL(
            "select channel_id, found.* from css.channel, lateral (select smpl_time, float_val from {} as "
            "each where each.channel_id = channel.channel_id order by smpl_time desc, nanosecs desc limit "
            "1) as found"
        ).format(where)

    return {
        "last hours of 5 signals": lambda dice: samples(dice.sample(range(1, SIGNALS + 1), 5), 4 * _HOUR),
        "a week of one": lambda dice: samples([dice.randint(1, SIGNALS)], 7 * _DAY),
        "a year of one": year,
        "newest of 200": newest,
    }


def _ends() -> tuple[float, float]:
    now = datetime.now(UTC)
    return (now - _YEAR).timestamp(), now.timestamp()


def _own() -> dict[str, Callable[[random.Random], sql.Composed]]:
    def name(number: int) -> str:
        return f"beam_{number // _WIDTH}/value_{1 + number % _WIDTH}"

    def samples(numbers: Sequence[int], span: timedelta) -> sql.Composed:
        each = sql.SQL(" union all ").join(
            sql.SQL("select * from ringlog.get_signal({}, now() - {}::interval, now())").format(
                name(one), span
            )
            for one in numbers
        )
        return sql.Composed([each])

    def year(dice: random.Random) -> sql.Composed:
        return sql.SQL("select * from ringlog.get_trends({}, now() - {}::interval, now(), {})").format(
            name(dice.randrange(SIGNALS)), _YEAR, POINTS
        )

    def newest(_: random.Random) -> sql.Composed:
        return sql.Composed(
            [
                sql.SQL(" union all ").join(
                    sql.SQL("(select * from {} where time is not null order by time desc limit 1)").format(
                        sql.Identifier("online", f"beam_{number}")
                    )
                    for number in range(_TABLES)
                )
            ]
        )

    return {
        "last hours of 5 signals": lambda dice: samples(dice.sample(range(SIGNALS), 5), 4 * _HOUR),
        "a week of one": lambda dice: samples([dice.randrange(SIGNALS)], 7 * _DAY),
        "a year of one": year,
        "newest of 200": newest,
    }
