"""Renames tables and columns: `renamed_from` in the facility file.

Stored objects get the new name, and so does the registry. A table's old name stays: as views `online.<old>`
and `log.<old>`, and in procedures that do the same as the new ones. A signal that is named after its table
and column is known by both names: in the registry the old one is valid to infinity.
"""

from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import OF_A_TABLE
from ringlog.schema import catalogue
from ringlog.schema.change import run
from ringlog.schema.facility import Facility, Table
from ringlog.schema.installing.obstacles import Obstacle, as_owner
from ringlog.schema.layout import CLOSED, LOG, LOG_TABLES, NAMED_AFTER_TABLES, READER, RECENT
from ringlog.schema.own_tables import own_table, text, timestamp
from ringlog.schema.registry import FOREVER, signal
from ringlog.schema.relations.tables import Columns, stored_columns
from ringlog.schema.relations.tiers import archived_tables
from ringlog.schema.sql_files import sql_file

former_table = own_table(
    "former_table",
    text("former", key=True),
    text("table_name", "its name now"),
    timestamp("renamed", default=sa.func.now()),
    comment="names that tables had before",
)


def obstacles(connection: sa.Connection, facility: Facility, known: Mapping[str, int]) -> Iterator[Obstacle]:
    """The obstacles to the new names."""
    cold = archived_tables(connection)
    now = {former: name for name, formers in former_names(connection).items() for former in formers}
    kept = {table.name for table in facility.tables}
    for table in facility.tables:
        old = table.renamed_from
        if table.name in now and table.name not in known and now[table.name] != old:
            yield _still_a_former_name(table.name, now[table.name], now[table.name] in kept)
        if old in known and table.name in known:
            yield Obstacle(
                f"table {table.name}: the file says that it was {old}, and both are in the database",
                "-- keep both tables in the facility file, without renamed_from",
            )
        name = old if old and old in known and table.name not in known else table.name
        there = _columns_renamed(connection, table, name)
        for column in table.columns:
            if column.renamed_from in there:
                where = f"table {table.name}, column {column.name}"
                if column.name in there:
                    yield Obstacle(
                        f"{where}: the file says that it was {column.renamed_from}, and both are in the"
                        " database",
                        "-- keep both columns in the facility file, without renamed_from",
                    )
                if name in cold:
                    yield Obstacle(
                        f"{where}: weeks of the table are in the archive, whose files have the old name",
                        f"-- keep the name, or bring the weeks back for good first: ringlog recall {name} …",
                    )


def _still_a_former_name(former: str, name: str, kept: bool) -> Obstacle:
    """A table that the file calls by a name which another one, or it itself, had before."""
    if not kept:
        return Obstacle(
            f"table {former}: it was renamed, and is {name} in the database with all of its history",
            f'-- call it {name} in the facility file, or write there renamed_from = "{name}", which gives it'
            " its old name back",
        )
    return Obstacle(
        f"table {former}: table {name} was called so before and is still known by that name; this ends that",
        as_owner(
            *(
                sql.SQL("drop function if exists {}").format(sql.Identifier("ringlog", each.format(former)))
                for each in OF_A_TABLE.values()
            ),
            *(
                sql.SQL("drop view if exists {}").format(sql.Identifier(schema, former))
                for schema in ("online", "log")
            ),
            sql.SQL("delete from ringlog.former_table where former = {}").format(sql.Literal(former)),
        ),
    )


def rename(connection: sa.Connection, facility: Facility, known: Mapping[str, int]) -> list[str]:
    """Renames tables and columns as the file says. Returns the renamed ones."""
    done = []
    for table in facility.tables:
        renamed = []
        if table.renamed_from in known and table.name not in known:
            assert table.renamed_from is not None
            _rename_table(connection, table.renamed_from, table.name)
            renamed.append(f"table {table.name}: it was {table.renamed_from}")
        elif table.name not in known:
            continue
        there = _columns_renamed(connection, table, table.name)
        for column in table.columns:
            if column.renamed_from and column.renamed_from in there:
                _rename_column(connection, table.name, column.renamed_from, column.name)
                renamed.append(f"column {table.name}.{column.name}: it was {column.renamed_from}")
        if renamed:
            _rename_signals(connection, table)
        done += renamed
    return done


def _columns_renamed(connection: sa.Connection, table: Table, name: str) -> Columns:
    """The stored columns of a table, by their new names where the file renames them."""
    if not any(column.renamed_from for column in table.columns):
        return {}
    return stored_columns(connection, "log", [name]).get(name, {})


def _rename_table(connection: sa.Connection, old: str, new: str) -> None:
    def do(statement: str, *names: sql.Composable) -> None:
        run(connection, sql.SQL(statement).format(*names))

    if new in former_names(connection).get(old, ()):
        # its own name again
        for schema in ("online", "log"):
            do("drop view if exists {}", sql.Identifier(schema, new))
    values = {"old": old, "schemas": [*NAMED_AFTER_TABLES]}
    named = sa.text(sql_file(__file__, "renamed_relations"))
    relations = connection.execute(named, values).all()
    kinds = {"r": "table", "p": "table", "v": "view", "S": "sequence", "i": "index", "f": "foreign table"}
    for schema, name, kind in relations:
        do(
            f"alter {kinds[kind]} {{}} rename to {{}}",
            sql.Identifier(schema, name),
            sql.Identifier(f"{new}{name.removeprefix(old)}"),
        )
    noted = connection.execute(
        sa.text(
            "select relname, attname from pg_attribute join pg_class on pg_class.oid = attrelid"
            " where relnamespace = 'ringlog'::regnamespace and relkind = 'r' and not attisdropped"
            # capture.<table> keeps its name
            " and relname <> 'captured_table'"
            " and attname in ('table_name', 'partition', 'part')"
        )
    ).all()
    partitions = [name for schema, name, _ in relations if schema == "log" and name != old]
    for relation, column in noted:
        changed = sql.SQL("{} || substr({}, {})").format(
            sql.Literal(new), sql.Identifier(column), sql.Literal(len(old) + 1)
        )
        run(
            connection,
            sql.SQL("update {} set {} = {} where {} = any({})").format(
                sql.Identifier("ringlog", relation),
                sql.Identifier(column),
                changed,
                sql.Identifier(column),
                sql.Literal([old] if column == "table_name" else partitions),
            ),
        )
    connection.execute(former_table.delete().where(former_table.c.former == new))
    connection.execute(former_table.insert().values(former=old, table_name=new))


def _rename_column(connection: sa.Connection, table: str, old: str, new: str) -> None:
    values = {"table": table, "old": old, "new": new}
    for schema in ("online", LOG_TABLES, LOG, "ring", RECENT):
        if old in stored_columns(connection, schema, [table]).get(table, {}):
            run(
                connection,
                sql.SQL("alter table {} rename column {} to {}").format(
                    sql.Identifier(schema, table), sql.Identifier(old), sql.Identifier(new)
                ),
            )
    if catalogue.exists(connection, "summary", table):
        run(
            connection,
            # a waveform's scalars too, which have its name before a dot
            sql.SQL(
                "update {} set column_name = overlay(column_name placing {} from 1 for {})"
                " where split_part(column_name, '.', 1) = {}"
            ).format(
                sql.Identifier("summary", table), sql.Literal(new), sql.Literal(len(old)), sql.Literal(old)
            ),
        )
    if catalogue.exists(connection, CLOSED, table):
        for statement in (
            # of a column that was dropped
            "delete from {} where column_name = {}",
            "update {} set column_name = {} where column_name = {}",
        ):
            names = (sql.Identifier(CLOSED, table), sql.Literal(new), sql.Literal(old))
            run(connection, sql.SQL(statement).format(*names))
    connection.execute(
        sa.text(
            "update ringlog.signal set column_name = :new where table_name = :table and column_name = :old"
        ),
        values,
    )


def _rename_signals(connection: sa.Connection, table: Table) -> None:
    """Signals that the file has other names for are known by both."""
    query = sa.select(signal.c.column_name, signal.c.signal).where(
        signal.c.table_name == table.name, signal.c.valid_to.is_(None)
    )
    now = {row.column_name: row.signal for row in connection.execute(query)}
    for column in table.columns:
        old, new = now.get(column.name), column.signal
        if old is None or old == new:
            continue
        columns = [each for each in signal.c if each.name != "signal"]
        history = sa.select(sa.literal(new), *columns).where(
            signal.c.signal == old, sa.func.coalesce(signal.c.valid_to, sa.func.now()) != FOREVER
        )
        existing = connection.scalar(sa.select(signal.c.signal).where(signal.c.signal == new).limit(1))
        if existing is None:
            # the old name's row makes way first: a name has one current row
            connection.execute(signal.insert().from_select(["signal", *columns], history))
            connection.execute(
                signal.update()
                .where(signal.c.signal == old, signal.c.valid_to.is_(None))
                .values(valid_to=FOREVER)
            )


def former_names(connection: sa.Connection) -> dict[str, list[str]]:
    """The names that each table had before."""
    found: dict[str, list[str]] = {}
    query = sa.select(former_table.c.table_name, former_table.c.former).order_by(former_table.c.former)
    for table, former in connection.execute(query):
        found.setdefault(table, []).append(former)
    return found


def view_former_names(connection: sa.Connection) -> list[str]:
    """Makes views of the tables under their old names, where they are not as the tables are; their names."""
    made = []
    for table, formers in former_names(connection).items():
        for schema in ("online", "log"):
            there = stored_columns(connection, schema, [table, *formers])
            for former in formers:
                if table not in there or list(there.get(former, {})) == list(there[table]):
                    continue
                names = {
                    "old": sql.Identifier(schema, former),
                    "new": sql.Identifier(schema, table),
                    "reader": sql.Identifier(READER),
                }
                for statement in (
                    "drop view if exists {old}",
                    "create view {old} with (security_invoker = true) as select * from {new}",
                    "grant select on {old} to {reader}",
                ):
                    run(connection, sql.SQL(statement).format(**names))
                made.append(f"view {schema}.{former}")
    return made
