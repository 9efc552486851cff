"""Copies a table's rows from one server to another, while more of them arrive.

Each connection is ringlog_owner's, in autocommit. Rows are stored on the other server in a transaction that
ends before the one that takes them from the first: if interrupted between, they are copied again, which
changes nothing. Rows that have changed since a transaction are found by its number: `age` compares such
numbers across wraparounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeAlias

import psycopg
from psycopg import sql

from ringlog.procedures import OF_A_TABLE
from ringlog.schema import catalogue, session
from ringlog.schema.access import rights
from ringlog.schema.access.roles import granting
from ringlog.schema.layout import LOG_TABLES, OWNER, SUMMARIES
from ringlog.schema.moving import moves

Connection: TypeAlias = psycopg.Connection[Any]

_AT_ONCE = 1000
"""rows that arrived meanwhile"""


def opened(conninfo: str) -> Connection:
    """A connection with the same text form of values on every server."""
    options = (
        "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres"
        " -c bytea_output=hex -c extra_float_digits=1 -c client_min_messages=warning"
    )
    connection = session.connect(conninfo, autocommit=True, options=options)
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(OWNER)))
    return connection


@dataclass(frozen=True)
class Part:
    """A partition of a log, from `start` on and before `end`; None: the default one."""

    name: str
    start: datetime | None
    end: datetime | None

    @property
    def within(self) -> sql.Composable:
        if self.start is None:
            return sql.SQL("true")
        return sql.SQL('"time" >= {} and "time" < {}').format(sql.Literal(self.start), sql.Literal(self.end))


@dataclass(frozen=True)
class Carrier:
    """Brings a table from `source` to `target`, where it is installed. `ring` is where its ring is stored."""

    source: Connection
    target: Connection
    table: str
    ring: sql.Identifier
    _known: dict[str, list[str]] = field(default_factory=dict)
    """columns of relations that have been read"""

    key: ClassVar[str] = "seq_no"
    """the column that identifies a row of the log, together with its time"""
    recording: ClassVar[str] = "record_moved_row"
    """the function of ringlog's that records the key of each row that enters the log"""

    @property
    def log(self) -> sql.Identifier:
        return sql.Identifier(LOG_TABLES, self.table)

    @property
    def summary(self) -> sql.Identifier:
        return sql.Identifier(SUMMARIES, self.table)

    @property
    def _until(self) -> sql.Composable:
        sequence = sql.Identifier(SUMMARIES, f"{self.table}_until").as_string()
        return sql.SQL("{}::regclass").format(sql.Literal(sequence))

    def done(self) -> dict[str, str | None]:
        """The parts that the target has, each with the transaction from which on changes may be missing."""
        query = "select part, as_of from ringlog.moved_part where table_name = %s"
        return dict(self.target.execute(query, [self.table]).fetchall())

    def copy(self, part: Part) -> int:
        """Copies a partition of the log, replacing the target's rows of its time. Returns the number of
        rows."""
        stored = sql.Identifier("log", part.name)
        with self.target.transaction():
            if part.start is None:
                columns = self._columns(self.log)
                query = sql.SQL("select {} from {}").format(names_of(columns), stored)
                rows = self._stage(query, self.log, columns)
                self._add_to_log(columns)
            else:
                rows = self._replace(self.log, part.within, stored)
            self._note(part.name, None)
        return rows

    def copy_summaries(self) -> None:
        """Copies all summaries; `carry_summaries` copies those made meanwhile."""
        as_of = self.as_of()
        with self.target.transaction():
            self._replace(self.summary, sql.SQL("true"))
            self._note(SUMMARIES, as_of)

    def carry_summaries(self, since: str) -> None:
        keys = ("level", "column_name", "begins")
        self._carry(self.summary, sql.SQL("true"), since, keys, {})

    def as_of(self) -> str:
        """The number of the oldest transaction whose changes cannot be seen yet."""
        row = self.source.execute("select pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()
        assert row is not None
        return str(row[0])

    def carry_log(self, most: int | None = None) -> int:
        """Copies rows of the log since `moves.begin_recording`, at most `most`. Returns how many."""
        columns = self._columns(self.log)
        carried = 0
        while most is None or carried < most:
            with self.source.transaction():
                keys = self.source.execute(
                    "delete from ringlog.moved_row where ctid = any(array("
                    " select ctid from ringlog.moved_row where table_name = %s limit %s))"
                    ' returning "time", seq_no',
                    [self.table, _AT_ONCE],
                ).fetchall()
                if not keys:
                    break
                query = self._logged(columns, keys)
                with self.target.transaction():
                    self._stage(query, self.log, columns)
                    self._add_to_log(columns)
            carried += len(keys)
        return carried

    def carry_late_rows(self) -> None:
        """Copies rows that reached the source after the switch, in a transaction that keeps further rows out.

        A writer without an answer has sent such a row again, to the target. Where put chose the number, it
        may differ there: the row is identified by its time and values, and put if it is missing.
        """
        keys = self.source.execute(
            'delete from ringlog.moved_row where table_name = %s and chosen returning "time", seq_no',
            [self.table],
        ).fetchall()
        if keys:
            columns = self._columns(self.log)
            ring = sql.Identifier("online", self.table)

            def without_number(of: str) -> sql.Composed:
                values = [
                    sql.NULL if name == "seq_no" else sql.Identifier(of, name) for name in self._columns(ring)
                ]
                return sql.SQL("row ({})::{}").format(sql.SQL(", ").join(values), ring)

            names = {
                "staged": staged(self.log),
                "log": self.log,
                "came": without_number("came"),
                "logged": without_number("logged"),
                "put": sql.Identifier("ringlog", OF_A_TABLE["put"].format(self.table)),
            }
            with self.target.transaction():
                self._stage(self._logged(columns, keys), self.log, columns)
                self.target.execute(
                    sql.SQL(
                        'delete from {staged} as came using {log} as logged where logged."time" = came."time"'
                        " and {logged} *= {came}"
                    ).format(**names)
                )
                self.target.execute(
                    sql.SQL(
                        'select {put}({came}) from (select * from {staged} order by "time") as came'
                    ).format(**names)
                )
            # on the target other rows have these numbers
            times, numbers = zip(*keys, strict=True)
            for relation in (self.log, self.ring):
                self.source.execute(
                    sql.SQL(
                        "delete from {} using unnest(%s::timestamptz[], %s::integer[]) as key (at, number)"
                        ' where "time" = key.at and seq_no = key.number'
                    ).format(relation),
                    [[*times], [*numbers]],
                )
        self.carry_log()

    def _logged(self, columns: Sequence[str], keys: Sequence[tuple[Any, ...]]) -> sql.Composed:
        """The query of the source's rows of these times and numbers."""
        times, numbers = zip(*set(keys), strict=True)
        return sql.SQL(
            "select {columns} from unnest({times}::timestamptz[], {numbers}::integer[]) as key (at, number)"
            ' join {log} as logged on logged."time" = key.at and logged.{key} = key.number'
        ).format(
            key=sql.Identifier(self.key),
            columns=names_of(columns, "logged"),
            times=sql.Literal([*times]),
            numbers=sql.Literal([*numbers]),
            log=self.log,
        )

    def _add_to_log(self, columns: Sequence[str]) -> None:
        came = staged(self.log)
        self.target.execute(
            sql.SQL('insert into {} ({}) select {} from {} on conflict ("time", seq_no) do nothing').format(
                self.log, names_of(columns), names_of(columns), came
            )
        )
        # rows after the switch may lie before the end of the summaries
        self.target.execute(
            sql.SQL(
                'insert into ringlog.summary_mark (table_name, "time") select {}, "time" from {}'
                ' where "time" <'
                " timestamptz 'epoch' + pg_sequence_last_value({}) * interval '1 microsecond'"
            ).format(sql.Literal(self.table), came, self._until)
        )

    def carry_ring(self, since: str | None) -> None:
        """Copies rows of the ring that have changed since; None: all written rows."""
        columns = self._columns(self.ring)
        query = sql.SQL('select {} from {} as own where "time" is not null').format(
            names_of(columns), self.ring
        )
        if since is not None:
            query += sql.SQL(" and {}").format(_changed(since))
        assignments = sql.SQL(", ").join(
            sql.SQL("{0} = came.{0}").format(sql.Identifier(column)) for column in columns
        )
        with self.target.transaction():
            if self._stage(query, self.ring, columns):
                self.target.execute(
                    sql.SQL(
                        "update {} as ring set {} from {} as came where ring.seq_no = came.seq_no"
                        ' and (ring."time" <= came."time" or ring."time" is null)'
                    ).format(self.ring, assignments, staged(self.ring))
                )

    def close(self) -> None:
        """Closes the source's copy: sessions that used it before are refused."""
        self.source.execute(moves.closing(self.table, self.ring))
        rights.hide(self.source, self.table)

    def let_read(self, first: Connection) -> None:
        """Lets readers and writers read the table on the first server."""
        first.execute(granting(self.table))

    def copy_signals(self) -> None:
        """Copies the registry's rows of the table's signals, current and former."""
        with self.target.transaction():
            self._replace_own("signal")

    def carry_books(self) -> None:
        """Copies the ledger and the events of the table."""
        grows = ("produced", "acknowledged", "thinned", "refused", "late", "repeated")
        self._carry_own("ledger", ("table_name", "hour", "spool"), dict.fromkeys(grows, "greatest"))
        self._carry_own("event", ("spool", "number", "table_name"), {"until": "greatest", "rows": "greatest"})

    def hand_over(self) -> None:
        """Copies the tables that only the server with the table has, in a transaction in which no rows
        arrive."""
        for name in (
            "writer",
            "writer_run",
            "how_taken",
            "arrival",
            "imported_file",
            "summary_mark",
            "summarised",
            "dropped",
            "cold_week",
            "archive_field",
            "migration",
        ):
            self._replace_own(name)
        row = self.source.execute(sql.SQL("select pg_sequence_last_value({})").format(self._until)).fetchone()
        if row and row[0] is not None:
            self.target.execute(sql.SQL("select setval({}, {})").format(self._until, sql.Literal(row[0])))

    def lock(self) -> None:
        """Locks the table's writers out of the source to the end of the transaction, after those at work have
        finished."""
        lock = sql.SQL("lock table {}, {} in share row exclusive mode")
        self.source.execute(lock.format(self.ring, self.log))

    def missing(self, part: Part) -> str | None:
        """The first row of a partition of the source that the target lacks, compared value for value."""
        columns, key = self._columns(self.log), sql.Identifier(self.key)
        query = sql.SQL('select {} from {} where {} order by "time", {}')
        in_target = _lines(self.target, query.format(names_of(columns), self.log, part.within, key))
        stored = sql.Identifier("log", part.name)
        for line in _lines(self.source, query.format(names_of(columns), stored, part.within, key)):
            if line not in in_target:  # continues from where it was
                return line.decode(errors="replace")[:100]
        return None

    def missing_of_ring(self) -> int | None:
        """The first seq_no of the source's ring whose row is newer than the target's, or differs."""
        columns = self._columns(self.ring)
        query = sql.SQL(
            'select seq_no, "time", md5(row({})::text) from {} where "time" is not null order by seq_no'
        ).format(names_of(columns), self.ring)
        in_target = {seq_no: (moment, digest) for seq_no, moment, digest in self.target.execute(query)}
        for seq_no, moment, digest in self.source.execute(query):
            carried = in_target.get(seq_no)
            if carried is None or carried[0] < moment or (carried[0] == moment and carried[1] != digest):
                return int(seq_no)
        return None

    def _carry_own(self, name: str, keys: Sequence[str], merged: dict[str, str]) -> None:
        relation = sql.Identifier("ringlog", name)
        own = sql.SQL("table_name = {}").format(sql.Literal(self.table))
        self._carry(relation, own, None, keys, merged)

    def _carry(
        self,
        relation: sql.Identifier,
        own: sql.Composable,
        since: str | None,
        keys: Sequence[str],
        merged: dict[str, str],
    ) -> None:
        """Rows that have changed since; `merged` names the function of both values that a column becomes."""
        columns = self._columns(relation)
        query = sql.SQL("select {} from {} as own where {}").format(names_of(columns), relation, own)
        if since is not None:
            query += sql.SQL(" and {}").format(_changed(since))
        assignments = sql.SQL(", ").join(
            sql.SQL(f"{{0}} = {merged[column]}(known.{{0}}, excluded.{{0}})").format(sql.Identifier(column))
            if column in merged
            else sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column))
            for column in columns
            if column not in keys
        )
        with self.target.transaction():
            if self._stage(query, relation, columns):
                self.target.execute(
                    sql.SQL(
                        "insert into {} as known ({}) select {} from {} on conflict ({}) do update set {}"
                    ).format(
                        relation,
                        names_of(columns),
                        names_of(columns),
                        staged(relation),
                        names_of(keys),
                        assignments,
                    )
                )

    def _replace_own(self, name: str, own: str = "table_name = {}", *, without: str = "") -> None:
        """Replaces the target's rows of one of ringlog's tables. It numbers them anew in the column
        `without`, in the same order."""
        condition = sql.SQL(own).format(sql.Literal(self.table))
        self._replace(sql.Identifier("ringlog", name), condition, without=without)

    def _replace(
        self,
        relation: sql.Identifier,
        own: sql.Composable,
        stored: sql.Identifier | None = None,
        without: str = "",
    ) -> int:
        """Replaces the target's rows with the source's, which are in `stored` if not in `relation`. Returns
        how many."""
        columns = names_of([column for column in self._columns(relation) if column != without])
        self.target.execute(sql.SQL("delete from {} where {}").format(relation, own))
        query = sql.SQL("select {} from {} where {}").format(columns, stored or relation, own)
        if without:
            query += sql.SQL(" order by {}").format(sql.Identifier(without))
        return pipe(self.source, query, self.target, sql.SQL("{} ({})").format(relation, columns))

    def _stage(self, query: sql.Composable, relation: sql.Identifier, columns: Sequence[str]) -> int:
        """Copies rows into a temporary table of the target that is like `relation`. Returns how many."""
        there = staged(relation)
        self.target.execute(
            sql.SQL("create temporary table if not exists {} (like {})").format(there, relation)
        )
        self.target.execute(sql.SQL("delete from {}").format(there))
        return pipe(self.source, query, self.target, sql.SQL("{} ({})").format(there, names_of(columns)))

    def _note(self, part: str, as_of: str | None) -> None:
        self.target.execute(
            "insert into ringlog.moved_part (table_name, part, as_of) values (%s, %s, %s)"
            " on conflict (table_name, part) do update set as_of = excluded.as_of",
            [self.table, part, as_of],
        )

    def _columns(self, relation: sql.Identifier) -> list[str]:
        """Those of the source, in its order."""
        name = relation.as_string()
        if name not in self._known:
            self._known[name] = [*catalogue.columns(self.source, relation)]
        return self._known[name]


def names_of(columns: Sequence[str], of: str | None = None) -> sql.Composed:
    path = () if of is None else (of,)
    return sql.SQL(", ").join(sql.Identifier(*path, column) for column in columns)


def staged(relation: sql.Identifier) -> sql.Identifier:
    return sql.Identifier("pg_temp", relation.as_string().replace('"', ""))


def _changed(since: str) -> sql.Composed:
    return sql.SQL("age(own.xmin) <= age({}::xid8::xid)").format(sql.Literal(since))


def pipe(source: Connection, query: sql.Composable, target: Connection, into: sql.Composable) -> int:
    """Copies rows of a query into a table of another server. Returns how many."""
    out = sql.SQL("copy ({}) to stdout (format binary)").format(query)
    with source.cursor() as reading, target.cursor() as writing:
        with (
            reading.copy(out) as taken,
            writing.copy(sql.SQL("copy {} from stdin (format binary)").format(into)) as given,
        ):
            for data in taken:
                given.write(data)
        # a closed cursor has no number of rows
        return writing.rowcount


def _lines(connection: Connection, query: sql.Composable) -> Iterator[bytes]:
    with connection.cursor() as cursor, cursor.copy(sql.SQL("copy ({}) to stdout").format(query)) as copy:
        for line in copy:
            yield bytes(line)
