"""Tables on other servers, as known to the first one.

Each node has the ring, the log and the procedures of its tables. The first server, on which sessions log in,
has the nodes in `ringlog.node`, the row types of their tables, and substitutes for their procedures: the
gateway calls those that `ringlog.stand_in` lists on their node; called here, they raise an error.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import OF_A_TABLE, Procedure
from ringlog.schema import catalogue, registry
from ringlog.schema.change import run
from ringlog.schema.facility import Facility
from ringlog.schema.installing import made, renaming
from ringlog.schema.installing.install import Part
from ringlog.schema.installing.made import Before
from ringlog.schema.installing.obstacles import Obstacle
from ringlog.schema.layout import CLOSED, GATEWAY, LOG, LOG_TABLES, READABLE, READER, WRITER
from ringlog.schema.moving.elsewhere import signal_elsewhere
from ringlog.schema.own_tables import smallint, text
from ringlog.schema.relations import sample_tables
from ringlog.schema.sql_files import sql_file

metadata = sa.MetaData(schema="ringlog")

node = sa.Table(
    "node",
    metadata,
    text("name", key=True),
    text("dsn", "an administrator's connection string"),
    text("password", "of ringlog_gateway there"),
    smallint("number", "numbers of signals of samples begin with it"),
    comment="servers that have tables of their own, readable by the owner only",
)

stand_in = sa.Table(
    "stand_in",
    metadata,
    text("name", key=True),
    text("table_name"),
    text("node"),
    comment="procedures that are called on a node, which has their table",
)

_SCHEMAS = ("online", LOG, LOG_TABLES)


@dataclass(frozen=True)
class NodeTable:
    """A table on a node, as it is described on this server."""

    table: str
    node: str
    columns: dict[str, list[tuple[str, str]]]
    """by schema, online, log and weeks: names and SQL types"""
    procedures: tuple[Procedure, ...]
    signals: tuple[dict[str, Any], ...]
    """rows of the registry there"""


def stored_elsewhere(connection: sa.Connection, facility: Facility, here: str | None) -> Iterator[Obstacle]:
    """Tables that the server `here` (None: the first one) has and the facility file puts on another."""
    wanted = {table.name: table.node for table in facility.every_table}
    for name in sample_tables.names(connection):
        if name in wanted and wanted[name] != here:
            yield _to_be_moved(name, here, wanted[name])


def called_elsewhere(connection: sa.Connection, facility: Facility) -> Iterator[Obstacle]:
    """The same of tables whose calls the first server sends to a node, though the node may be away."""
    wanted = {table.name: table.node for table in facility.every_table}
    for name, there in tables_elsewhere(connection).items():
        if name in wanted and wanted[name] != there:
            yield _to_be_moved(name, there, wanted[name])


def _to_be_moved(name: str, here: str | None, wanted: str | None) -> Obstacle:
    return Obstacle(
        f"table {name} is {_location(here)} with its rows, and the facility file puts it "
        f"{_location(wanted)}: ringlog node move {name} --facility FILE takes it there",
        f"-- or leave its node as it was: {'no key node' if here is None else f'node = {here!r}'}",
    )


def _location(name: str | None) -> str:
    return "on the first server" if name is None else f"on node {name}"


_TIMES = ("valid_from", "valid_to")
# infinity is no datetime
_SIGNAL = [
    sa.cast(column, sa.TEXT).label(column.name) if column.name in _TIMES else column
    for column in registry.signal.c
]


def node_tables(connection: sa.Connection, of: str, names: Collection[str]) -> list[NodeTable]:
    """The description of these tables for another server, read on their node `of`."""
    for setting, value in (("search_path", "pg_catalog"), ("datestyle", "ISO")):
        connection.execute(sa.select(sa.func.set_config(setting, value, True)))
    formers = renaming.former_names(connection)
    return [
        NodeTable(
            name,
            of,
            {
                schema: [*catalogue.columns(connection, sql.Identifier(schema, name)).items()]
                for schema in _SCHEMAS
            },
            tuple(_procedures(connection, of, name, (name, *formers.get(name, ())))),
            tuple(
                {**row, "node": of}
                for row in connection.execute(
                    sa.select(*_SIGNAL).where(registry.signal.c.table_name == name)
                ).mappings()
            ),
        )
        for name in names
    ]


_STAND_IN = sql.SQL(sql_file(__file__, "nodes_stand_in"))
_VOLATILITY = {"v": "volatile", "s": "stable", "i": "immutable"}


def _procedures(connection: sa.Connection, of: str, table: str, called: Sequence[str]) -> Iterator[Procedure]:
    """The procedures of a table, with the names, arguments and rights that they have on the node."""
    statement = sa.text(
        "select proname, pg_get_function_arguments(oid) as arguments,"
        " pg_get_function_result(oid) as result,"
        " provolatile::text as volatility, prosecdef as definer, obj_description(oid, 'pg_proc') as comment,"
        " array(select grantee::regrole::text from aclexplode(proacl)"
        " where grantee <> 0 and grantee <> proowner order by 1) as grantees"
        " from pg_proc where pronamespace = 'ringlog'::regnamespace and proname = any(:names)"
        " order by proname"
    )
    names = [pattern.format(name) for name in called for pattern in OF_A_TABLE.values()]
    for row in connection.execute(statement, {"names": names}):
        name = sql.Identifier("ringlog", row.proname)
        source = _STAND_IN.format(
            name=name,
            arguments=sql.SQL(row.arguments),
            result=sql.SQL(row.result),
            volatility=sql.SQL(_VOLATILITY[row.volatility]),
            security=sql.SQL("security definer" if row.definer else "security invoker"),
            node=sql.Literal(of),
            table=sql.Literal(table),
            title=sql.Literal(row.proname),
            comment=sql.Literal(f"On node {of}. {row.comment or ''}"),
        )
        for grantee in row.grantees:
            source += sql.SQL("grant execute on function {} to {};\n").format(name, sql.SQL(grantee))
        yield Procedure(row.proname, source.as_string())


def known_nodes(connection: sa.Connection) -> dict[str, tuple[str, str]]:
    """By name: the administrator's connection string, and the password of ringlog_gateway."""
    if not sa.inspect(connection).has_table(node.name, node.schema):
        return {}
    return {row.name: (row.dsn, row.password) for row in connection.execute(sa.select(node))}


def numbers(connection: sa.Connection) -> dict[str, int]:
    """By name: the number of a node, the first server's being 0."""
    if not sa.inspect(connection).has_table(node.name, node.schema):
        return {}
    return {row.name: row.number for row in connection.execute(sa.select(node))}


def tables_elsewhere(connection: sa.Connection) -> dict[str, str]:
    """The tables that stand-ins here are for, and their nodes."""
    if not sa.inspect(connection).has_table(stand_in.name, stand_in.schema):
        return {}
    query = sa.select(stand_in.c.table_name, stand_in.c.node).distinct()
    return {row.table_name: row.node for row in connection.execute(query)}


def placing(nodes: Sequence[tuple[str, str, str, int]], tables: Sequence[NodeTable]) -> Part:
    """Creates this server's tables about nodes (names, connection strings, passwords, numbers) and their
    tables."""

    def install(connection: sa.Connection) -> list[str]:
        if not sa.inspect(connection).has_table(node.name, node.schema):
            metadata.create_all(connection, checkfirst=False)
            # the gateway is in no group, and reads this table before any login
            gateway = sql.Identifier(GATEWAY)
            run(connection, sql.SQL("grant usage on schema ringlog to {}").format(gateway))
            run(connection, sql.SQL("grant select on ringlog.stand_in to {}").format(gateway))
        existing = known_nodes(connection)
        changed = []
        for name, dsn, password, number in nodes:
            if existing.get(name) == (dsn, password):
                continue
            connection.execute(node.delete().where(node.c.name == name))
            connection.execute(node.insert().values(name=name, dsn=dsn, password=password, number=number))
            changed.append(f"node {name}")
        for table in tables:
            changed += _make_types(connection, table)
            connection.execute(signal_elsewhere.delete().where(signal_elsewhere.c.table_name == table.table))
            if table.signals:
                connection.execute(signal_elsewhere.insert(), table.signals)
            renewed = made.renew(connection, table.procedures)
            for name in renewed:
                connection.execute(stand_in.delete().where(stand_in.c.name == name))
                row = {"name": name, "table_name": table.table, "node": table.node}
                connection.execute(stand_in.insert().values(row))
            # those of procedures that the node no longer has
            changed += _drop_stand_ins(connection, table.table, {each.name for each in table.procedures})
            if renewed and {*renewed.values()} == {Before.ABSENT}:
                changed.append(f"table {table.table} on node {table.node}")
            else:
                changed += [f"procedure {name}" for name in renewed]
        return changed

    return install


def make_room(connection: sa.Connection, table: str) -> None:
    """Drops the types and stand-ins of a table on a node, so that the table itself can be made here. Calls go
    to the node as before: `stand_in` keeps the names."""
    own = stand_in.c.table_name == table
    rows = connection.execute(sa.select(stand_in).where(own)).mappings().all()
    _drop_stand_ins(connection, table, None)
    for schema in _SCHEMAS:
        run(connection, sql.SQL("drop type if exists {}").format(sql.Identifier(schema, table)))
    connection.execute(stand_in.insert(), [dict(row) for row in rows])


def keep_away(connection: sa.Connection, table: NodeTable) -> list[sql.Identifier]:
    """Keeps a new table unused while the one on the node is in use: its procedures are stand-ins, its signals
    those of the node, and nobody may read it. Returns its readable relations."""
    for each in table.procedures:
        run(connection, each.source)
    connection.execute(registry.signal.delete().where(registry.signal.c.table_name == table.table))
    schemas = [*READABLE, CLOSED]
    relations = catalogue.relations(connection, schemas, [table.table])
    readable = [sql.Identifier(*name) for name, kind in relations.items() if kind in ("r", "p", "v")]
    hide = sql.SQL("revoke select on {} from {}, {}")
    run(connection, hide.format(sql.SQL(", ").join(readable), sql.Identifier(READER), sql.Identifier(WRITER)))
    return readable


def _make_types(connection: sa.Connection, table: NodeTable) -> list[str]:
    """Makes the row types of ring and log, or gives them the columns that are new on the node."""
    changed = []
    for schema, columns in table.columns.items():
        name = sql.Identifier(schema, table.table)
        existing = catalogue.columns(connection, name)
        new = [(column, kind) for column, kind in columns if column not in existing]
        same = {column: kind for column, kind in columns if column in existing}
        if existing and existing != same:
            # a column of another type, or gone: the stand-ins that depend on it are made again
            _drop_stand_ins(connection, table.table, None)
            run(connection, sql.SQL("drop type {}").format(name))
            existing, new = {}, columns
        if not existing:
            fields = sql.SQL(", ").join(_field(column, kind) for column, kind in columns)
            run(connection, sql.SQL("create type {} as ({})").format(name, fields))
        elif new:
            actions = (sql.SQL("add attribute {}").format(_field(column, kind)) for column, kind in new)
            run(connection, sql.SQL("alter type {} {}").format(name, sql.SQL(", ").join(actions)))
            changed.append(f"table {table.table} on node {table.node}: {len(new)} columns more in {schema}")
    return changed


def _field(column: str, kind: str) -> sql.Composed:
    return sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(kind))


def _drop_stand_ins(connection: sa.Connection, table: str, kept: set[str] | None) -> list[str]:
    names = connection.scalars(sa.select(stand_in.c.name).where(stand_in.c.table_name == table))
    dropped = made.drop(connection, {*names} - (kept or set()))
    connection.execute(stand_in.delete().where(stand_in.c.name.in_(dropped)))
    return [f"procedure {name}: dropped" for name in dropped]
