"""How samples of many signals are stored best: `python -m ringlog_lab.samples DSN`.

Three forms in an empty database of a durable PostgreSQL: a row for each sample; a row for each signal of a
call, with arrays of its samples; a row for each call, with arrays of the samples of many signals. The loads
are calls with ten samples of each of 2,000 signals (10 Hz), with one of each of 20,000 (1 Hz), and with ten
of each of 20, until each has 12,000. Two clients write to two tables at once. The last two forms are then
merged to blocks of one signal.
"""

import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import psycopg
from psycopg import pq

from ringlog.schema import session

CLIENTS = 2
BLOCK = 4096
"""samples of a merged block"""
LONG = 12_000
"""samples of the signal that is read"""

_ROWS = """
create table {0} (
  signal integer, "time" bigint, value double precision, severity smallint, status smallint,
  primary key (signal, "time")
)
"""
_PUT_ROWS = """
insert into {0} select * from unnest($1::integer[], $2::bigint[], $3::double precision[])
on conflict do nothing
"""
_BLOCKS = """
create table {0} (
  signal integer, "time" bigint, begins bigint, times bigint[], samples double precision[],
  severities smallint[], statuses smallint[], primary key (signal, "time")
);
alter table {0} alter times set storage external, alter samples set storage external
"""
_PUT_BLOCKS = """
with came as materialized (
  select
    signal, max("time") as "time", min("time") as begins, array_agg("time") as times,
    array_agg(value) as samples
  from unnest($1::integer[], $2::bigint[], $3::double precision[]) as each (signal, "time", value)
  group by signal
)
insert into {0}
select came.* from came where not exists (
  select from {0} as there where there.signal = came.signal and there."time" >= came.begins
    and there.begins <= came."time"
)
"""
_CALLS = """
create table {0} (
  number bigint generated always as identity primary key, begins bigint, "time" bigint, signals integer[],
  times bigint[], samples double precision[]
);
alter table {0} alter signals set storage external, alter times set storage external,
  alter samples set storage external
"""
_PUT_CALLS = """
insert into {0} (begins, "time", signals, times, samples)
select min("time"), max("time"), array_agg(signal), array_agg("time"), array_agg(value)
from unnest($1::integer[], $2::bigint[], $3::double precision[]) as each (signal, "time", value)
"""
_UNNESTED = 'unnest(block.times, block.samples) as each ("time", value)'
_MERGED = """
insert into {1} (signal, "time", begins, times, samples)
select signal, max("time"), min("time"), array_agg("time" order by "time"), array_agg(value order by "time")
from (
  select *, (row_number() over (partition by signal order by "time") - 1) / {2} as block from ({0}) as each
) as numbered
group by signal, block
"""


@dataclass(frozen=True)
class Form:
    """A form of storage: its table, the statement of a call, and all its samples as rows."""

    title: str
    table: str
    put: str
    rows: str
    is_merged: bool = True


FORMS = (
    Form("a row a sample", _ROWS, _PUT_ROWS, 'select signal, "time", value from {0}', is_merged=False),
    Form(
        "a row a signal and call",
        _BLOCKS,
        _PUT_BLOCKS,
        f"select signal, each.* from {{0}} as block, {_UNNESTED}",
    ),
    Form(
        "a row a call",
        _CALLS,
        _PUT_CALLS,
        'select each.* from {0} as block, unnest(signals, times, samples) as each (signal, "time", value)',
    ),
)


Call: TypeAlias = list[bytes]
"""Its arrays in PostgreSQL's binary form, so that the clients take no time."""


def calls(signals: int, samples: int, n: int) -> list[Call]:
    """`n` calls with a number of samples of each signal."""
    random = np.random.default_rng(53)
    names = np.repeat(np.arange(1, signals + 1), samples)
    made = []
    for call in range(n):
        at = 1_800_000_000_000_000_000 + (call * samples + np.tile(np.arange(samples), signals)) * 100_000_000
        times = at + random.integers(0, 1_000_000, len(at))
        made.append(
            [_sent(names, ">i4", 23), _sent(times, ">i8", 20), _sent(random.normal(size=len(at)), ">f8", 701)]
        )
    return made


def _sent(values: np.ndarray, kind: str, oid: int) -> bytes:
    """array_recv's form."""
    each = np.zeros(len(values), [("length", ">i4"), ("value", kind)])
    each["length"], each["value"] = np.dtype(kind).itemsize, values
    return struct.pack(">iiiii", 1, 0, oid, len(values), 1) + each.tobytes()


def main(address: str) -> None:
    """Prints a line for each form and load."""
    for signals, samples, n in ((2_000, 10, 24), (20_000, 1, 24), (20, 10, LONG // 10)):
        load = calls(signals, samples, n)
        for form in FORMS:
            _measure(address, form, load, signals * samples * n)


def _measure(address: str, form: Form, load: Sequence[Call], n: int) -> None:
    tables = [f"samples_{number}" for number in range(CLIENTS)]
    with session.connect(address, autocommit=True) as connection:
        for table in tables:
            connection.execute(f"drop table if exists {table}".encode())
            connection.execute(form.table.format(table).encode())

        def write(table: str) -> None:
            with session.connect(address, autocommit=True) as client:
                client.pgconn.prepare(b"put", form.put.format(table).encode())
                for call in load:
                    result = client.pgconn.exec_prepared(b"put", call, [1, 1, 1])
                    assert result.status == pq.ExecStatus.COMMAND_OK, result.error_message

        threads = [threading.Thread(target=write, args=(table,)) for table in tables]
        seconds = _timed(
            lambda: [*map(threading.Thread.start, threads), *map(threading.Thread.join, threads)]
        )
        print(
            f"{form.title}, {len(load)} calls of {n // len(load)} samples:"
            f" {CLIENTS * n / seconds:,.0f} samples/s,"
            f" {_bytes(connection, tables[0]) / n:.0f} bytes a sample,"
            f" {_reading(connection, form, tables[0])}"
        )
        if form.is_merged:
            connection.execute("drop table if exists merged")
            connection.execute(_BLOCKS.format("merged").encode())
            merging = _MERGED.format(form.rows.format(tables[0]), "merged", BLOCK)
            seconds = _timed(lambda: connection.execute(merging.encode()))
            print(
                f"  merged at {n / seconds:,.0f} samples/s:"
                f" {_bytes(connection, 'merged') / n:.0f} bytes a sample,"
                f" {_reading(connection, FORMS[1], 'merged')}"
            )


def _bytes(connection: psycopg.Connection, table: str) -> int:
    row = connection.execute("select pg_total_relation_size(%s)", [table]).fetchone()
    assert row is not None
    return int(row[0])


def _reading(connection: psycopg.Connection, form: Form, table: str) -> str:
    """The median time in which the samples of one signal are made in the server, as rows and as bytes."""
    rows = form.rows.format(table)
    texts = {"as rows": f'select count(value), max("time") from ({rows}) as each where signal = 7'}
    if form is FORMS[1]:
        texts["as blocks"] = f"select array_send(times), array_send(samples) from {table} where signal = 7"
    found = []
    for title, text in texts.items():

        def read(text: str = text) -> None:
            connection.execute(text.encode(), binary=True).fetchall()

        read()
        times = sorted(_timed(read) for _ in range(9))
        found.append(f"one signal {title} {times[4] * 1000:.2f} ms")
    return ", ".join(found)


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1])
