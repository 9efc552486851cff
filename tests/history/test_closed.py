"""Closed rows as columns: every answer equals that of the rows, whatever changes in these."""

import json
import random
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from psycopg import sql

from ringlog.history import closed as columns_of
from ringlog.history import closing as packing_of
from ringlog.history import reading
from ringlog.history.archive.archiving import archive
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.history.archive.restoring import restore
from ringlog.history.closing import close
from ringlog.history.connection import connect, rows
from ringlog.history.packing import (
    DAMAGES,
    joined,
    packed,
    packed_lists,
    packed_texts,
    packed_times,
    unpacked,
)
from ringlog.history.reading import read
from ringlog.history.summaries.resummarising import summarise_again
from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

from .test_changed_columns import changed

KINDS = (
    "real",
    "double",
    "int",
    "smallint",
    "bigint",
    "bit",
    "varchar(20)",
    "real[]",
    "bit[]",
    "numeric(9,3)",
)
NAMES = [f"c{number}" for number in range(len(KINDS))]


@pytest.mark.parametrize("seed", range(8))
def test_packed_values_are_the_same_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 7, 300, 4096]))
    there = [None, np.zeros(n, bool), rng.random(n) < 0.7, np.ones(n, bool)][seed % 4]
    for kind, code in {
        pa.float32(): "f4",
        pa.float64(): "f8",
        pa.int16(): "i2",
        pa.int32(): "i4",
        pa.int64(): "i8",
        pa.bool_(): "u1",
    }.items():
        most = 1 if code == "u1" else 2**15
        for values in (
            rng.integers(0, most + 1, n).astype(code) if code[0] != "i" else rng.integers(-most, most, n),
            np.zeros(n),
            rng.choice([0, 1], n),
            rng.normal(size=n) > 1 if code == "u1" else rng.normal(1000, 1, n),
            np.arange(n) % 2 if code == "u1" else np.arange(n) % 300,
            np.array([np.nan, -0.0, 0.0, np.inf, -np.inf])[rng.integers(0, 5, n)]
            if code[0] == "f"
            else np.ones(n),
        ):
            given = values.astype(code)
            content = packed(given, there)
            array = unpacked(pa.py_buffer(content), kind, n)
            array.validate(full=True)
            one = packed(given[:1])
            both = joined([content, one, content], kind, [n, 1, n])
            both.validate(full=True)
            apart = pa.concat_arrays([array, unpacked(pa.py_buffer(one), kind, 1), array])
            assert both.is_valid().equals(apart.is_valid())
            assert np.asarray(both.drop_null()).tobytes() == np.asarray(apart.drop_null()).tobytes()
            expected = np.ones(n, bool) if there is None else there
            assert (np.asarray(array.is_valid()) == expected).all()
            if code == "u1":
                assert [value for value in array.to_pylist() if value is not None] == [
                    bool(value) for value in given[expected]
                ]
            else:
                found = np.asarray(array.drop_null())
                assert found.tobytes() == given[expected].tobytes()
    times = np.cumsum(rng.integers(0, 3, n)) * 1_000_000 + 1_790_000_000_000_000
    both = joined([packed_times(times)] * 2, pa.int64(), [n, n])
    assert both.to_pylist() == 2 * times.tolist()
    assert (
        np.asarray(unpacked(pa.py_buffer(packed_times(times)), pa.timestamp("us", "UTC"), n))
        .astype("i8")
        .tolist()
        == times.tolist()
    )
    texts = [None if rng.random() < 0.2 else rng.choice(["", "ON", "Grüße", "off" * 40]) for _ in range(n)]
    assert unpacked(pa.py_buffer(packed_texts(texts)), pa.string(), n).to_pylist() == texts
    lists = [None if rng.random() < 0.2 else rng.normal(size=rng.integers(0, 5)).tolist() for _ in range(n)]
    lengths = np.array([len(each or ()) for each in lists], np.int32)
    points = np.concatenate([np.array(each or (), float) for each in lists])
    content = packed_lists(lengths, points, np.array([each is not None for each in lists]))
    assert unpacked(pa.py_buffer(content), pa.list_(pa.float64()), n).to_pylist() == lists


def test_damaged_contents_are_refused_or_have_as_many_values() -> None:
    rng = np.random.default_rng(7)
    n = 300
    there = rng.random(n) > 0.1
    lengths = rng.integers(0, 4, n).astype(np.int32)
    sound = [
        (packed(rng.normal(size=n)), pa.float64()),
        (packed(rng.normal(1000, 1, n).astype("f4"), there), pa.float32()),
        (packed(rng.choice([1.5, 2.5], n)), pa.float64()),
        (packed(rng.integers(0, 2, n).astype("u1")), pa.bool_()),
        (packed_times(np.cumsum(rng.integers(1, 900, n))), pa.int64()),
        (packed_times(np.arange(n)), pa.int64()),
        (packed_lists(lengths, rng.normal(size=lengths.sum())), pa.list_(pa.float64())),
    ]
    refused = 0
    for content, kind in sound:
        for number in range(300):
            octets = bytearray(content)
            for offset in rng.integers(
                0, min(len(octets), 40 if number % 2 else len(octets)), 1 + number % 3
            ):
                octets[offset] = rng.integers(0, 256)
            damaged = bytes(octets[: len(octets) if number % 4 else rng.integers(0, len(octets))])
            for join in (False, True):
                try:
                    array = joined([damaged], kind, [n]) if join else unpacked(damaged, kind, n)
                except DAMAGES:
                    refused += 1
                else:
                    array.validate(full=True)
                    assert len(array) == n
    assert refused > 1000
    # lengths of 2^32 - 1, and more points than LZ4 can make of these bytes
    of_lengths = packed(np.full(n, -1, np.int32))
    content = bytes([5]) + len(of_lengths).to_bytes(4, "little") + of_lengths + packed(np.ones(1))
    with pytest.raises(ValueError, match="packed lists have 1288490188500 values"):
        unpacked(content, pa.list_(pa.float64()), n)
    for damaged in (b"", b"\x03\x00", b"\x09" + bytes(9000)):
        with pytest.raises(DAMAGES):
            joined([damaged], pa.float64(), [1 << 20])


BEGIN = datetime(2025, 10, 6, tzinfo=UTC)
"""three weeks before Central Europe's clocks are set back"""
WEEKS = 4
NOW = BEGIN + timedelta(weeks=WEEKS, days=-2)
VALUES: tuple[tuple[object, ...], ...] = (
    (0.1, "-0", "NaN", "-Infinity", 1e-45),
    (0.1, "-0", "NaN", "Infinity", 5e-324),
    (-(2**31), 0, 2**31 - 1),
    (-(2**15), 0, 2**15 - 1),
    (-(2**63), 0, 2**63 - 1),
    (True, False),
    ("", "Ω ü", '"', "OK"),
    ([], [0.5, "-0"], ["NaN"] * 4, [1.5] * 9),
    ([], [True, False, True]),
    ("0.001", "-999999.999"),
)


class Log:
    """A log, and a plain table with the same rows."""

    def __init__(self, engine: sa.Engine, conninfo: str, folder: Path, seed: int, zone: str = "UTC") -> None:
        self.engine, self.conninfo, self.chance = engine, conninfo, random.Random(seed)
        columns = tuple(
            Column(name, f"m/{name}", kind, points=9 if kind.endswith("[]") else None)
            for name, kind in zip(NAMES, KINDS, strict=True)
        )
        self.names = [*NAMES]
        self.table = Table("m", 50, 60.0, columns, summaries=(60, 3600))
        self.facility = Facility(
            "test", zone, (self.table,), history=History(Retention(2, "week"), str(folder))
        )
        install(engine, self.facility)
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute("create table public.plain (like weeks.m including all)")

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def put(self, n: int = 40) -> None:
        """Stores rows of all weeks, including their first and last moments, some with equal times."""
        for _ in range(n):
            week = BEGIN + timedelta(weeks=self.chance.randrange(WEEKS))
            within = [0, 1, 7 * 86_400_000_000 - 1, self.chance.randrange(7 * 86_400_000_000)]
            moment = min(week + timedelta(microseconds=self.chance.choice(within)), NOW - timedelta(hours=1))
            row = {"seq_no": self.chance.randint(1, 3), "time": moment.isoformat()}
            for name, values in zip(self.names, VALUES, strict=True):
                row[name] = self.chance.choice((None, *values)) if self.chance.random() < 0.5 else values[0]
            given = [json.dumps(row)]
            done = self.connection.execute(
                "insert into public.plain select * from json_populate_record(null::weeks.m, %s)"
                " on conflict do nothing",
                given,
            )
            if done.rowcount:
                put = "select ringlog.put_m(r) from json_populate_record(null::online.m, %s) as r"
                self.connection.execute(put, given)

    def summarise(self) -> None:
        summarise(self.conninfo, NOW, enough=1)

    def close(self) -> None:
        assert close(self.conninfo, full=self.chance.random() < 0.8, pauses=0).complete

    def maintain(self) -> None:
        maintain(self.engine, NOW)

    def archive(self) -> None:
        [*archive(self.conninfo, NOW, pauses=0)]

    def recall(self) -> None:
        [*recall(self.conninfo, "m", BEGIN, NOW, timedelta(days=1))]

    def end_of_recall(self) -> None:
        self.connection.execute(
            "update ringlog.cold_week set recalled_until = %s where recalled_until is not null", [BEGIN]
        )
        self.archive()

    def leave_and_return(self) -> None:
        """Weeks are set aside, rows arrive for them, and they are restored."""
        retention = "update ringlog.logged_table set retention = %s where table_name = 'm'"
        dropped = self.connection.execute(
            "select count(*) from ringlog.cold_week where recalled_until is null"
        )
        if dropped.fetchone() != (0,):
            return
        self.connection.execute(retention, ["16 days"])
        self.maintain()
        self.connection.execute(retention, ["500 weeks"])
        self.put(20)
        self.chance.choice((self.summarise, self.close, self.maintain))()
        [*restore(self.conninfo, "m", BEGIN - timedelta(weeks=1), NOW)]

    def rename(self) -> None:
        """Renames a column, and gives its former name to another one."""
        if self.connection.execute("select true from ringlog.cold_week where rows > 0").fetchone():
            return
        first, second = self.names[0], self.names[2]
        for old, new in ((first, "once"), (second, first), ("once", second)):
            self.connection.execute(f"alter table public.plain rename {old} to {new}".encode())
            columns = tuple(
                replace(each, name=new, renamed_from=old) if each.name == old else each
                for each in self.table.columns
            )
            self.table = replace(self.table, columns=columns)
            changed(self.engine, self.connection, replace(self.facility, tables=(self.table,)))
        columns = tuple(replace(each, renamed_from=None) for each in self.table.columns)
        self.table = replace(self.table, columns=columns)
        self.names[0], self.names[2] = second, first

    def same(self) -> None:
        """Every read equals the plain table, bit for bit."""
        bounds = [BEGIN - timedelta(days=1), *(BEGIN + timedelta(weeks=n) for n in range(WEEKS + 1))]
        bounds += [BEGIN + timedelta(seconds=self.chance.random() * WEEKS * 7 * 86_400) for _ in range(5)]
        keys = self.connection.execute("select time from public.plain")
        bounds += [self.chance.choice(keys.fetchall())[0].astimezone(UTC)]
        for _ in range(8):
            start, end = sorted(self.chance.sample(bounds, 2))
            names = self.chance.sample(["seq_no", *self.names], self.chance.choice((1, 1, 2, 5)))
            limit = self.chance.choice((None, None, 1, 17))
            query = sql.SQL(
                "select {} from public.plain where time >= {} and time < {} order by time, seq_no limit {}"
            ).format(
                sql.SQL(", ").join(map(sql.Identifier, ["time", *names])),
                sql.Literal(start),
                sql.Literal(end),
                sql.SQL("all") if limit is None else sql.Literal(limit),
            )
            with closing(connect(self.conninfo)) as plain:
                found = [*read(self.conninfo, "m", names, start, end, limit=limit)]
                assert files.same(iter(found), rows(plain, query)), (start, end, names, limit)


@pytest.mark.parametrize(
    ("seed", "length"), [(1, 4), *(pytest.param(seed, 18, marks=pytest.mark.long) for seed in range(1, 6))]
)
def test_columns_agree_with_the_rows_after_all_changes(
    engine: sa.Engine, conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, length: int
) -> None:
    monkeypatch.setattr(packing_of, "BLOCK", 8)
    monkeypatch.setattr(columns_of, "_AT_ONCE", 9)
    monkeypatch.setattr(reading, "_FEW", 5)
    given: list[int] = []

    def counted(*arguments: Any) -> columns_of.Blocks:
        found = blocks(*arguments)
        given.append(len(found.blocks))
        return found

    blocks = columns_of.blocks
    monkeypatch.setattr(reading, "blocks", counted)
    zone = ("UTC", "Europe/Berlin")[seed % 2]
    with Log(engine, conninfo, tmp_path / "archive", seed, zone) as log:
        steps = [
            *(Log.put, Log.maintain, Log.summarise, Log.close, Log.archive, Log.recall, Log.end_of_recall),
            *(Log.leave_and_return, Log.rename),
        ]
        log.put(100)
        log.maintain()
        done = []
        for each in log.chance.sample(steps * 2, length):
            done.append(each.__name__)
            each(log)
            log.same()
            if log.chance.random() < 0.5:
                log.put(3)
                log.same()
            log.summarise()
            log.close()
            log.same()
    # most is read from columns
    assert sum(given) > 5 * length, done


def test_logins_without_the_log_read_no_columns(engine: sa.Engine, conninfo: str, tmp_path: Path) -> None:
    with Log(engine, conninfo, tmp_path / "archive", 1) as log:
        log.put(5)
        log.maintain()
        log.summarise()
        assert close(conninfo, pauses=0).complete
        count = "select count(*) > 0 from closed.m"
        with log.connection.transaction(force_rollback=True):
            log.connection.execute("set local role daq_reader")
            assert log.connection.execute(count).fetchone() == (True,)
            log.connection.execute("reset role; revoke select on weeks.m from daq_reader")
            log.connection.execute("set local role daq_reader")
            assert log.connection.execute(count).fetchone() == (False,)


def test_rows_changed_by_hand_are_read_after_summarise(
    engine: sa.Engine, conninfo: str, tmp_path: Path
) -> None:
    with Log(engine, conninfo, tmp_path / "archive", 1) as log:
        log.put(30)
        log.maintain()
        log.summarise()
        assert close(conninfo, pauses=0).complete
        for relation in ("weeks.m", "public.plain"):
            log.connection.execute(f"delete from {relation} where time < %s".encode(), [BEGIN + timedelta(8)])
        [*summarise_again(conninfo, "m", BEGIN, NOW, NOW)]
        log.same()


def test_a_damaged_block_is_named_and_replaced(engine: sa.Engine, conninfo: str, tmp_path: Path) -> None:
    with Log(engine, conninfo, tmp_path / "archive", 1) as log:
        log.put(30)
        log.maintain()
        log.summarise()
        assert close(conninfo, pauses=0).complete
        assert [*problems_of(log.connection)] == []
        log.connection.execute("update closed.m set content = substr(content, 1, 3) where column_name = 'c3'")
        # an unreadable block is replaced by its rows
        log.same()
        names = {"c1": "content = substr(content, 1, 3)", "c2": "content = content || content"}
        names["c5"] = "rows = rows + 1"
        for name, change in names.items():
            log.connection.execute(
                f"update closed.m set {change} where column_name = %s and begins ="
                " (select begins from closed.m where column_name = 'time' and rows > 0"
                " order by begins offset %s limit 1)".encode(),
                [name, [*names].index(name)],
            )
        found = [*problems_of(log.connection)]
        assert [line.split(" from ")[0] for line in found][:1] == [
            "closed.m: column c1 of the block has other values than the log"
        ]
        log.same()
        assert [*problems_of(log.connection)] == []
        assert sum(close(conninfo, pauses=0).rows.values()) > 0
        log.same()
        # late rows end a block, and are no defect
        log.put(3)
        assert [*problems_of(log.connection)] == []


OLD, OTHER = Column("old", "m/old", "numeric(9,3)"), Column("other", "m/other", "double")


def two_columns(engine: sa.Engine, conninfo: str) -> Table:
    """A table with 2000 closed rows, n and n / 8."""
    table = Table("m", 50, 60.0, (OLD, OTHER), summaries=(60,))
    install(engine, Facility("test", "UTC", (table,)))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into weeks.m (seq_no, time, old, other)"
            " select 1, %s + n * interval '1 minute', n / 8.0, n from generate_series(1, 2000) as n",
            [BEGIN],
        )
    maintain(engine, NOW)
    summarise(conninfo, NOW, enough=1)
    assert close(conninfo, pauses=0).rows == {"m": 2000}
    return table


def test_a_column_that_is_dropped_and_added_again_has_no_old_values(engine: sa.Engine, conninfo: str) -> None:
    table = two_columns(engine, conninfo)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for there in ((OTHER,), (OLD, OTHER)):
            changed(engine, connection, Facility("test", "UTC", (replace(table, columns=there),)))
    found = pa.Table.from_batches(read(conninfo, "m", ["other", "old"], BEGIN, NOW))
    assert found["other"].to_pylist() == [*range(1, 2001)]
    assert found["old"].null_count == 2000


def test_numerics_are_read_from_columns(engine: sa.Engine, conninfo: str) -> None:
    two_columns(engine, conninfo)
    with closing(connect(conninfo)) as connection:
        found = columns_of.blocks(connection, "m", ["old", "other"], None, None).blocks
    (rows_of,) = [block.rows for block in found if block.rows is not None]
    assert rows_of["old"].to_pylist() == [f"{n / 8:.3f}" for n in range(1, 2001)]


def test_imported_rows_are_packed_in_the_next_round(engine: sa.Engine, conninfo: str) -> None:
    """Also those of a week before the newest one, and those of a table without blocks."""

    def packed(connection: psycopg.Connection, rows: int, end: datetime) -> int:
        """The number of rows packed after so many have come, which are a second apart and late."""
        connection.execute("select ringlog.make_week('m', %s)", [end - timedelta(weeks=1)])
        connection.execute(
            "with come as (insert into weeks.m (seq_no, time, old, other)"
            " select 2, %s - n * interval '1 second', n / 8.0, n from generate_series(1, %s) as n"
            " returning time)"
            " insert into ringlog.summary_mark (table_name, time) select 'm', time from come",
            [end, rows],
        )
        came = summarise(conninfo, NOW, enough=1)
        return close(conninfo, full=False, read=came, pauses=0).rows.get("m", 0)

    two_columns(engine, conninfo)
    rows = 2 * packing_of.BLOCK
    with psycopg.connect(conninfo, autocommit=True) as connection:
        assert packed(connection, rows, BEGIN) == rows
        # few late rows wait for the round of all tables
        assert packed(connection, 3, BEGIN - timedelta(weeks=1)) == 0
        connection.execute("drop table closed.m; delete from ringlog.closed")
        assert packed(connection, rows, BEGIN - timedelta(weeks=2)) == 2000 + rows + 3 + rows
