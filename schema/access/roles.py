"""Roles and rights: the owner of the stored data, and who may write and read it.

PostgreSQL checks every right under the caller's own role. Nobody can log in as ringlog_owner, which owns
tables and procedures; only the put procedures, which run as their owner, change a ring or a log, and only the
set procedures a parameter.
"""

import psycopg
import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import SYSTEM_SCHEMAS
from ringlog.schema import catalogue
from ringlog.schema.change import run
from ringlog.schema.layout import (
    ARCHIVIST,
    GATEWAY,
    LOG,
    LOG_TABLES,
    OWNER,
    PARAMETER_WRITER,
    READER,
    RECORDER,
    SCHEMAS,
    TABLE_READER,
    TABLE_WRITER,
    WRITER,
)
from ringlog.schema.own_tables import own_table, text
from ringlog.schema.session import AnyConnection, driver

_ATTRIBUTES = {
    OWNER: sql.SQL("nologin"),
    WRITER: sql.SQL("nologin"),
    READER: sql.SQL("nologin"),
    TABLE_WRITER: sql.SQL("nologin"),
    TABLE_READER: sql.SQL("nologin"),
    PARAMETER_WRITER: sql.SQL("nologin"),
    ARCHIVIST: sql.SQL("nologin"),
    RECORDER: sql.SQL("nologin"),
    GATEWAY: sql.SQL("login noinherit"),
}


def create_missing_roles(connection: sa.Connection) -> list[str]:
    """Creates the roles that the cluster does not have, and returns their names."""
    known = set(connection.scalars(sa.text("select rolname from pg_roles")))
    missing = [role for role in _ATTRIBUTES if role not in known]
    for role in missing:
        run(connection, sql.SQL("create role {} {}").format(sql.Identifier(role), _ATTRIBUTES[role]))
    return missing


def has_owner(connection: sa.Connection) -> bool:
    """Whether the cluster has ringlog_owner: not before ringlog is first installed in it."""
    return bool(connection.scalar(sa.text("select to_regrole(:owner) is not null"), {"owner": OWNER}))


def owner_logs_in(connection: sa.Connection) -> bool:
    """Whether ringlog_owner may log in: a client could then write without the procedures."""
    return bool(
        connection.scalar(
            sa.text("select rolcanlogin from pg_roles where rolname = :owner"), {"owner": OWNER}
        )
    )


def foreign_schemas(connection: sa.Connection) -> list[tuple[str, str]]:
    """Those of ringlog's schemas that belong to another role, with their owner."""
    statement = sa.text(
        "select nspname, nspowner::regrole::text from pg_namespace"
        " where nspname = any(:schemas) and nspowner is distinct from to_regrole(:owner) order by nspname"
    )
    values = {"schemas": [*SCHEMAS, *SYSTEM_SCHEMAS], "owner": OWNER}
    return [(schema, owner) for schema, owner in connection.execute(statement, values)]


def create_missing_schemas(connection: sa.Connection) -> list[str]:
    """Creates the schemas that the database does not have, and returns their names."""
    _join_owner(connection)
    known = sa.inspect(connection).get_schema_names()
    missing = [schema for schema in (*SCHEMAS, *SYSTEM_SCHEMAS) if schema not in known]
    for schema in missing:
        run(
            connection,
            sql.SQL("create schema {} authorization {}").format(
                sql.Identifier(schema), sql.Identifier(OWNER)
            ),
        )
    if missing:
        run(connection, sql.SQL("grant usage on schema {} to public").format(_names(*SYSTEM_SCHEMAS)))
    lacks = sa.text(
        "select true where exists (select from unnest(cast(:roles as name[])) as role,"
        " unnest(cast(:schemas as text[])) as schema where not has_schema_privilege(role, schema, 'usage'))"
    )
    everyone = (WRITER, READER, TABLE_WRITER, TABLE_READER, PARAMETER_WRITER, ARCHIVIST, RECORDER)
    if connection.scalar(lacks, {"roles": [*everyone], "schemas": [*SCHEMAS]}):
        grant = sql.SQL("grant usage on schema {} to {}").format(_names(*SCHEMAS), _names(*everyone))
        run(connection, grant)
    return missing


def forbid_large_objects(connection: psycopg.Connection) -> None:
    """Revokes everybody's right to write large objects in this database, as a superuser only: any login could
    fill the disk with them, beyond its session."""
    if connection.execute("select true from pg_roles where rolname = current_user and rolsuper").fetchone():
        for function in catalogue.large_objects_of_all(connection):
            connection.execute(f"revoke execute on function {function} from public".encode())


def become_owner(connection: AnyConnection) -> None:
    """Acts as ringlog_owner to the end of the transaction."""
    _join_owner(connection)
    run(connection, sql.SQL("set local role {}").format(sql.Identifier(OWNER)))


def _join_owner(connection: AnyConnection) -> None:
    # the creator of a role may grant it, also to itself, but is not yet a member of it
    right = "SET" if driver(connection).info.server_version >= 160000 else "MEMBER"
    if driver(connection).execute("select where not pg_has_role(%s, %s)", [OWNER, right]).rowcount:
        run(connection, sql.SQL("grant {} to current_user").format(sql.Identifier(OWNER)))


def granting(table: str) -> sql.Composed:
    """The statement that lets readers read a table's ring and log, and writers the ring's last row."""
    ring, log, weeks = (sql.Identifier(schema, table) for schema in ("online", LOG, LOG_TABLES))
    return sql.SQL('grant select on {}, {}, {} to {}; grant select (seq_no, "time") on {} to {}').format(
        ring, log, weeks, _names(READER), ring, _names(WRITER)
    )


def _names(*roles: str) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(role) for role in roles)


table_right = own_table(
    "table_right",
    text("login", key=True),
    text("role", "the right: daq_table_writer or daq_table_reader", key=True),
    text("table_name", key=True),
    comment="logins with rights to single tables",
)

group_right = own_table(
    "group_right",
    text("login", key=True),
    text("role", "the right: daq_table_writer or daq_table_reader", key=True),
    text("group_name", key=True),
    comment="logins with rights to groups of tables",
)

table_group = own_table(
    "table_group",
    text("group_name", key=True),
    text("table_name", key=True),
    comment="the groups of tables that the facility file names",
)
