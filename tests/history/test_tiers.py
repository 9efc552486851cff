"""Log and archive together equal one plain table, wherever weeks are and however rows arrive."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from ringlog.history.archive.archiving import archive
from ringlog.history.archive.parquet import files
from ringlog.history.archive.recall import recall
from ringlog.history.connection import connect, rows
from ringlog.history.reading import read
from ringlog.schema.facility import Column, Facility, History, Retention, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain

from .test_changed_columns import changed

pytestmark = pytest.mark.long

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
WEEKS = 6
NOW = BEGIN + timedelta(weeks=WEEKS, days=3)
VALUES: dict[str, tuple[str, tuple[object, ...]]] = {
    "field": ("real", (0.1, -0.0, float("nan"), float("-inf"), 1e-45)),
    "current": ("double", (0.1, -0.0, float("nan"), float("inf"), 5e-324)),
    "steps": ("int", (-(2**31), 0, 2**31 - 1)),
    "is_on": ("bit", (True, False)),
    "charge": ("numeric(9,3)", ("0.001", "-999999.999", "NaN")),
    "state": ("varchar(9)", ("", "Ω ü", '"', "OK")),
    "trace": ("real[]", ([], [0.5, -0.0], [float("nan")] * 4)),
    "turns": ("bigint", (-(2**63), 0, 2**63 - 1)),
}
COLUMNS = {
    name: Column(name, f"m/{name}", kind, points=4 if kind.endswith("[]") else None)
    for name, (kind, _) in VALUES.items()
}


class Tiers:
    """A log with an archive, and the plain table."""

    def __init__(
        self, engine: sa.Engine, conninfo: str, folder: Path, chance: random.Random, first: list[str]
    ) -> None:
        self.engine, self.conninfo, self.chance = engine, conninfo, chance
        self.values = {name: VALUES[name] for name in first}
        self.table = Table("magnets", 50, 60.0, tuple(COLUMNS[name] for name in first))
        self.facility = Facility(
            "test", "UTC", (self.table,), history=History(Retention(2, "week"), str(folder))
        )
        install(engine, self.facility)
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute("create table public.plain (like weeks.magnets including all)")

    def rows(self) -> None:
        """Some new rows, repeats of old ones, and others of the same time and seq_no, which do not count."""
        keys = self.connection.execute("select seq_no, time from public.plain order by time, seq_no")
        known = keys.fetchall()
        some = self.chance.sample(known, min(5, len(known)))
        for seq_no, moment in [*some, *self._keys()]:
            values = [seq_no, moment, *(self._one_of(kind) for kind in self.values.values())]
            self._insert("public", values)
            self._insert("weeks", values)
        for key in self.chance.sample(known, min(5, len(known))):
            self.connection.execute(
                "insert into weeks.magnets select * from public.plain where seq_no = %s and time = %s"
                " on conflict do nothing",
                key,
            )

    def _keys(self) -> Iterator[tuple[int, datetime]]:
        """Times of all weeks, their first and last moments among them."""
        for _ in range(25):
            week = BEGIN + timedelta(weeks=self.chance.randrange(WEEKS))
            within = [0, 1, 7 * 86_400_000_000 - 1, self.chance.randrange(7 * 86_400_000_000)]
            yield self.chance.randint(1, 3), week + timedelta(microseconds=self.chance.choice(within))

    def _one_of(self, kind: tuple[str, tuple[object, ...]]) -> object:
        return self.chance.choice((None, *kind[1]))

    def _insert(self, schema: str, values: list[Any]) -> None:
        relation = sql.Identifier(schema, "plain" if schema == "public" else "magnets")
        places = sql.SQL(", ").join(sql.Placeholder() * len(values))
        statement = sql.SQL("insert into {} values ({}) on conflict do nothing").format(relation, places)
        self.connection.execute(statement, values)

    def archive(self) -> None:
        [*archive(self.engine, self.conninfo, NOW, pauses=0)]

    def recall(self) -> None:
        first, last = sorted(self.chance.sample(range(WEEKS + 1), 2))
        span = (BEGIN + timedelta(weeks=first), BEGIN + timedelta(weeks=last))
        [*recall(self.engine, self.conninfo, "magnets", *span, timedelta(days=1))]

    def end_of_recall(self) -> None:
        """Archives the recalled weeks again."""
        self.connection.execute(
            "update ringlog.cold_week set recalled_until = %s where recalled_until is not null", [BEGIN]
        )
        self.archive()

    def maintain(self) -> None:
        maintain(self.engine, NOW)

    def another_column(self) -> None:
        self.connection.execute("alter table public.plain add column turns bigint")
        self.values["turns"] = VALUES["turns"]
        self._change((*self.table.columns, COLUMNS["turns"]))

    def another_type(self) -> None:
        self.connection.execute("alter table public.plain alter column steps type bigint")
        wide = {"steps": "bigint"}
        self._change(tuple(replace(each, type=wide.get(each.name, each.type)) for each in self.table.columns))

    def _change(self, columns: tuple[Column, ...]) -> None:
        self.table = replace(self.table, columns=columns)
        changed(self.engine, self.connection, replace(self.facility, tables=(self.table,)))

    def same(self) -> bool:
        """Whether reading across the tiers returns the rows of the plain table, bit for bit."""
        names = ["seq_no", *self.values]
        query = sql.SQL("select {} from public.plain order by time, seq_no").format(
            sql.SQL(", ").join(map(sql.Identifier, ["time", *names]))
        )
        with closing(connect(self.conninfo)) as plain:
            return files.same(read(self.conninfo, "magnets", names), rows(plain, query))

    def sent(self, relation: str) -> list[tuple[object, ...]]:
        """All rows in PostgreSQL's binary form, which has all of their bits."""
        query = f"select encode(record_send(r), 'hex') from {relation} as r order by time, seq_no"
        return self.connection.execute(query.encode()).fetchall()


# columns of a table with waveforms keep their types
@pytest.mark.parametrize(
    ("seed", "columns", "step"),
    [
        (1, ["field", "current", "steps", "is_on", "charge", "state"], Tiers.another_type),
        (2, ["field", "trace", "state"], Tiers.maintain),
    ],
)
def test_the_rows_are_the_same_in_all_tiers(
    engine: sa.Engine,
    conninfo: str,
    tmp_path: Path,
    seed: int,
    columns: list[str],
    step: Callable[[Tiers], None],
) -> None:
    """All operations in random order, with rows after each."""
    chance = random.Random(seed)
    tiers = Tiers(engine, conninfo, tmp_path / "archive", chance, columns)
    steps = [step, Tiers.archive, Tiers.recall, Tiers.end_of_recall, Tiers.another_column]
    chance.shuffle(steps)
    with tiers.connection:
        tiers.rows()
        for number, each in enumerate([Tiers.maintain, Tiers.archive, Tiers.recall, *steps, Tiers.archive]):
            each(tiers)
            tiers.rows()
            assert tiers.same(), (number, steps)
        [*recall(engine, conninfo, "magnets", BEGIN, NOW, timedelta(days=1))]
        assert tiers.sent("weeks.magnets") == tiers.sent("public.plain")
