"""Schema `archive`: a view of each log's archived weeks, for SQL.

A view has the rows of a foreign table of postgres_fdw, for which the archive server reads the files
(`ringlog.history.archive_server`). It sends along which files those are: the list comes from the manifest as
the query's snapshot has it, as a value that a column of the foreign table is compared with, and that is part
of what postgres_fdw sends.

Each column is called `name:type` in what is sent. Those whose types PostgreSQL and DuckDB compare, sort
or calculate with differently have domains in the foreign table: postgres_fdw evaluates expressions of
other than PostgreSQL's own types in PostgreSQL.
"""

from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256

import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import catalogue
from ringlog.schema.change import run
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.layout import ARCHIVE, ARCHIVE_FILES, OWNER, READER
from ringlog.schema.roles import become_owner

SERVER = "archive server (see ringlog status)"
"""The foreign server's name, which is part of PostgreSQL's error when it cannot be reached."""
USER = "ringlog"

_EXTENSION = "postgres_fdw"
_OTHER = "ringlog other files"
"""The foreign tables' column that the list of files is compared with: `<>`, of which PostgreSQL believes
that it keeps nearly all rows."""

_FETCHED = 200_000
"""values that are fetched at once, about"""


def prepare(connection: sa.Connection) -> list[str]:
    """Makes the extension where that may be done: to be called before the role changes to ringlog_owner's."""
    text = sa.text(
        "select rolsuper and exists (select from pg_available_extensions where name = :name)"
        " and not exists (select from pg_extension where extname = :name)"
        " from pg_roles where rolname = current_user"
    )
    if not connection.scalar(text, {"name": _EXTENSION}):
        return []
    for statement in (
        "create extension {extension} schema {schema}",
        "grant usage on foreign data wrapper {extension} to {owner}",
    ):
        run(
            connection,
            sql.SQL(statement).format(
                extension=sql.Identifier(_EXTENSION),
                schema=sql.Identifier(ARCHIVE_FILES),
                owner=sql.Identifier(OWNER),
            ),
        )
    return [f"extension {_EXTENSION}"]


def create_missing(connection: sa.Connection, tables: Collection[str]) -> list[str]:
    """Makes the views that these tables lack, or whose columns are not their logs'; of which tables."""
    usable = _make_server(connection)
    made = []
    names = {"schema": ARCHIVE, "names": [*tables]}
    there: dict[str, str] = dict(connection.execute(sa.text(_THERE), names).all())
    for table in sorted(tables):
        columns = catalogue.columns(connection, sql.Identifier("log", table))
        statements = [*(_of_files(table, columns) if usable else _of_nothing(table, columns))]
        digest = sha256("".join(statement.as_string() for statement in statements).encode()).hexdigest()[:16]
        comment = f"the archived weeks of log.{table}, which the archive server reads (made as {digest})"
        if there.get(table) == comment:
            continue
        if table in there and not _continues(connection, table, columns):
            run(connection, sql.SQL("drop view {}").format(sql.Identifier(ARCHIVE, table)))
        for statement in (*statements, *_described(table, comment)):
            run(connection, statement)
        made.append(table)
    return made


_THERE = """
select relname, coalesce(obj_description(oid, 'pg_class'), '') from pg_class
where relnamespace = to_regnamespace(:schema) and relkind = 'v' and relname = any(:names)
"""


def _continues(connection: sa.Connection, table: str, columns: dict[str, str]) -> bool:
    """Whether the view has the first of these columns, so that others may stand on it while it gets the
    rest."""
    there = [*catalogue.columns(connection, sql.Identifier(ARCHIVE, table)).items()]
    return there == [*columns.items()][: len(there)]


def _described(table: str, comment: str) -> Iterator[sql.Composable]:
    view = sql.Identifier(ARCHIVE, table)
    yield sql.SQL("comment on view {} is {}").format(view, sql.Literal(comment))
    yield sql.SQL("grant select on {} to {}").format(view, sql.Identifier(READER))


def _of_files(table: str, columns: dict[str, str]) -> Iterator[sql.Composable]:
    """The foreign table and its view. A foreign table that is there makes way when the view has the new
    one."""
    old, new = (sql.Identifier(ARCHIVE_FILES, name) for name in (table, f"new {table}"))
    named = {
        "new": new,
        "old": old,
        "name": sql.Identifier(table),
        "view": sql.Identifier(ARCHIVE, table),
        "server": sql.Identifier(SERVER),
        "columns": sql.SQL(", ").join(_foreign(columns)),
        "options": sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.SQL(option), sql.Literal(value))
            for option, value in {
                "schema_name": ARCHIVE,
                "table_name": table,
                "updatable": "false",
                "fetch_size": str(_fetched(columns)),
            }.items()
        ),
        "shown": sql.SQL(", ").join(_shown(columns)),
        "other": sql.Identifier(_OTHER),
        "table": sql.Literal(table),
    }
    for statement in (
        "drop foreign table if exists {new}",
        "create foreign table {new} ({columns}) server {server} options ({options})",
        "create or replace view {view} as select {shown} from {new} where {other} <> " + _FILES,
        "drop foreign table if exists {old}",
        "alter foreign table {new} rename to {name}",
    ):
        yield sql.SQL(statement).format(**named)


_FILES = """(
  select coalesce((
    select json_build_object('folder', archive, 'files', (
      select json_agg(json_build_array(file, begins, ends, rows, footer) order by begins)
      from ringlog.cold_week where table_name = {table} and recalled_until is null and rows > 0
    ))::text
    from ringlog.history
  ), '{{}}')
)"""
"""What the archive server is to read, as JSON."""


def _foreign(columns: dict[str, str]) -> Iterator[sql.Composed]:
    for name, kind in columns.items():
        domain = _domain(kind)
        yield sql.SQL("{} {} options (column_name {})").format(
            sql.Identifier(name),
            sql.SQL(kind) if domain is None else sql.Identifier(ARCHIVE_FILES, domain),
            sql.Literal(f"{name}:{kind}"),
        )
    yield sql.SQL("{} text options (column_name 'other:')").format(sql.Identifier(_OTHER))


def _shown(columns: dict[str, str]) -> Iterator[sql.Composable]:
    for name, kind in columns.items():
        column = sql.Identifier(name)
        if _domain(kind) is None:
            yield column
        else:
            yield sql.SQL("{0}::{1} as {0}").format(column, sql.SQL(kind))


def _fetched(columns: dict[str, str]) -> int:
    """Rows that are fetched at once; few where they are long."""
    types = [ColumnType.of_postgresql(kind) for kind in columns.values()]
    if any(kind is None or kind.is_array for kind in types):
        return 10
    return max(100, min(1000, _FETCHED // len(types)))


_DOMAINS = {"text": "text", "numeric": "numeric"} | {
    f"{kind.sql.lower()} array": f"{kind.sql.lower()}[]"
    for kind in map(
        ColumnType, (Kind.REAL, Kind.DOUBLE, Kind.INT, Kind.SMALLINT, Kind.BIGINT, Kind.BIT, Kind.TEXT)
    )
}


def _domain(kind: str) -> str | None:
    """The domain that a type of columns has in foreign tables; None for numbers, times and bits."""
    column = ColumnType.of_postgresql(kind)
    if column is None:
        raise ValueError(f"no column has the type {kind}")
    if column.is_array:
        return "text array" if column.is_text else f"{column.element.sql.lower()} array"
    if column.is_text:
        return "text"
    return "numeric" if column.kind is Kind.NUMERIC else None


def _of_nothing(table: str, columns: dict[str, str]) -> Iterator[sql.Composable]:
    """A view that says why it has no rows."""
    shown = (
        sql.SQL("null::{} as {}").format(sql.SQL(kind), sql.Identifier(name))
        for name, kind in columns.items()
    )
    yield sql.SQL("create or replace view {} as select {} from ringlog.refuse_archive()").format(
        sql.Identifier(ARCHIVE, table), sql.SQL(", ").join(shown)
    )


def _make_server(connection: sa.Connection) -> bool:
    """Makes the foreign server and the domains; whether that can be."""
    usable = sa.text(
        "select exists (select from pg_foreign_data_wrapper where fdwname = :name"
        " and has_foreign_data_wrapper_privilege(current_user, fdwname, 'usage'))"
    )
    if not connection.scalar(usable, {"name": _EXTENSION}):
        return False
    if connection.scalar(
        sa.text("select exists (select from pg_foreign_server where srvname = :name)"), {"name": SERVER}
    ):
        return True
    for name, kind in _DOMAINS.items():
        domain = sql.Identifier(ARCHIVE_FILES, name)
        run(connection, sql.SQL("create domain {} as {}").format(domain, sql.SQL(kind)))
    version = connection.dialect.server_version_info
    options = {
        "dbname": "archive",
        "host": "127.0.0.1",
        "port": "1",
        "sslmode": "disable",
        "gssencmode": "disable",
        "connect_timeout": "10",
        "application_name": "ringlog",
    }
    # so that nobody else on the port of a server that is down is told the password
    if version and version >= (16,):
        options["require_auth"] = "scram-sha-256"
    run(
        connection,
        sql.SQL("create server {} foreign data wrapper {} options ({})").format(
            sql.Identifier(SERVER), sql.Identifier(_EXTENSION), _options(options)
        ),
    )
    mapping = _options({"user": USER, "password": "none yet"})
    run(
        connection,
        sql.SQL("create user mapping for {} server {} options ({})").format(
            sql.Identifier(OWNER), sql.Identifier(SERVER), mapping
        ),
    )
    return True


def _options(options: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.SQL(name), sql.Literal(value)) for name, value in options.items()
    )


def is_needed(connection: sa.Connection) -> bool:
    """Whether there is an archive, and PostgreSQL reaches an archive server."""
    return bool(
        connection.scalar(
            sa.text(
                "select exists (select from ringlog.history)"
                " and exists (select from pg_foreign_server where srvname = :name)"
            ),
            {"name": SERVER},
        )
    )


def announced(connection: sa.Connection) -> tuple[str, int]:
    """Where PostgreSQL looks for the archive server: host and port."""
    query = sa.text("select unnest(srvoptions) from pg_foreign_server where srvname = :name")
    options = dict(option.split("=", 1) for option in connection.scalars(query, {"name": SERVER}))
    return options["host"], int(options["port"])


def announce_server(connection: sa.Connection, host: str, port: int, password: str) -> None:
    """Has PostgreSQL find the archive server there, with this password."""
    become_owner(connection)
    server = sql.Identifier(SERVER)
    for statement in (
        sql.SQL("alter server {} options (set host {}, set port {})").format(
            server, sql.Literal(host), sql.Literal(str(port))
        ),
        sql.SQL("alter user mapping for {} server {} options (set password {})").format(
            sql.Identifier(OWNER), server, sql.Literal(password)
        ),
    ):
        run(connection, statement)


def drop_others(connection: sa.Connection, tables: Iterable[str]) -> None:
    """Drops the views of tables that are known no longer, as after a rename."""
    query = sa.text(
        "select relname from pg_class where relnamespace = to_regnamespace(:schema) and relkind = 'f'"
        " and relname <> all(:names)"
    )
    for name in connection.scalars(query, {"schema": ARCHIVE_FILES, "names": [*tables]}).all():
        run(connection, sql.SQL("drop foreign table {} cascade").format(sql.Identifier(ARCHIVE_FILES, name)))
