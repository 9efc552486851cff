"""Schema `archive`: a view of each log's archived weeks, for SQL.

A view has the rows of a foreign table of postgres_fdw, for which the archive server reads the files
(`ringlog.history.archive_server`). Its option table_name is the digest of the list of files: postgres_fdw
sends it, and it is part of the catalogue, so a week leaves its log in the transaction that adds its file
(`ringlog.list_archived`). The foreign table is the only partition of another table, which `log.<table>` reads
(`ringlog.schema.relations.logs`): PostgreSQL leaves it out where a query needs none of its time.

Each column is sent as `name:type`. Those whose types PostgreSQL and DuckDB compare, sort
or calculate with differently have domains in the foreign table: postgres_fdw evaluates expressions of
other than PostgreSQL's own types in PostgreSQL.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256

import psycopg
import sqlalchemy as sa
from psycopg import sql

from ringlog.schema import catalogue
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import run
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.facility import KEY_COLUMNS
from ringlog.schema.layout import ARCHIVE, ARCHIVE_FILES, LOG_TABLES, OWNER, READER
from ringlog.schema.relations import logs

SERVER = "archive server (see ringlog status)"
"""The foreign server's name, which is part of PostgreSQL's error when it cannot be reached."""
USER = "ringlog"
SAMPLE_KEYS = ("number", "time", "nanoseconds")
SAMPLE_COLUMNS = {
    "number": "integer",
    "time": "timestamp with time zone",
    "nanoseconds": "smallint",
    "value": "",
    "severity": "smallint",
    "status": "smallint",
}
"""Columns of archived samples, with their types; that of the value is the table's. They are ordered by the
signal's number, then by time."""
_NEW = "new {}"
"""name of a table in schema ARCHIVE_FILES until it takes the place of the old one"""

_EXTENSION = "postgres_fdw"
_FETCHED = 10
"""rows that a query fetches at once"""


def prepare(connection: sa.Connection) -> list[str]:
    """Makes the extension if the role may. Call it before the role changes to ringlog_owner's."""
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


def create_missing(
    connection: sa.Connection, tables: Collection[str], of_samples: Collection[str] = ()
) -> list[str]:
    """Makes the foreign tables and the views that these tables of rows and of samples lack, or whose columns
    are not their logs'. Returns these tables."""
    usable = _make_server(connection)
    made = []
    names = {"schema": ARCHIVE, "names": [*tables, *of_samples]}
    there: dict[str, str] = dict(connection.execute(sa.text(_THERE), names).all())
    for table in sorted(names["names"]):
        columns = catalogue.columns(connection, sql.Identifier(LOG_TABLES, table))
        keys: tuple[str, ...] = KEY_COLUMNS
        if table in of_samples:
            keys = SAMPLE_KEYS
            columns = sample_columns(columns)
        statements = [*(_of_files(table, columns, keys) if usable else _of_nothing(table, columns))]
        digest = sha256("".join(statement.as_string() for statement in statements).encode()).hexdigest()[:16]
        comment = f"the archived weeks of log.{table}, which the archive server reads (made as {digest})"
        if there.get(table) == comment:
            continue
        if table in there and not _continues(connection, table, columns):
            run(connection, sql.SQL("drop view {}").format(sql.Identifier(ARCHIVE, table)))
        for statement in statements:
            run(connection, statement)
        if usable:
            if logs.has_archive(connection, table):
                logs.view_archive(connection, table, _NEW.format(table))
            _replace(connection, table)
        for statement in _described(table, comment):
            run(connection, statement)
        run(connection, sql.SQL("select ringlog.list_archived({})").format(sql.Literal(table)))
        made.append(table)
    return made


def sample_columns(columns: dict[str, str]) -> dict[str, str]:
    """The columns of archived samples, with their types; `columns` are those of the table of their blocks."""
    return SAMPLE_COLUMNS | {"value": columns.get("points") or columns["samples"].removesuffix("[]")}


_THERE = """
select relname, coalesce(obj_description(oid, 'pg_class'), '') from pg_class
where relnamespace = to_regnamespace(:schema) and relkind = 'v' and relname = any(:names)
"""


def _continues(connection: sa.Connection, table: str, columns: dict[str, str]) -> bool:
    """Whether the view has the first of these columns, so that others may depend on it while it gets the
    rest."""
    there = [*catalogue.columns(connection, sql.Identifier(ARCHIVE, table)).items()]
    return there == [*columns.items()][: len(there)]


def _described(table: str, comment: str) -> Iterator[sql.Composable]:
    view = sql.Identifier(ARCHIVE, table)
    yield sql.SQL("comment on view {} is {}").format(view, sql.Literal(comment))
    yield sql.SQL("grant select on {} to {}").format(view, sql.Identifier(READER))


def _of_files(table: str, columns: dict[str, str], keys: Collection[str]) -> Iterator[sql.Composable]:
    """The foreign tables of the log and of the view, the table that the first is a partition of, and the
    view."""
    named = {
        "weeks": sql.Identifier(ARCHIVE_FILES, _NEW.format(table)),
        "files": sql.Identifier(ARCHIVE_FILES, _NEW.format(f"{table} files")),
        "view": sql.Identifier(ARCHIVE, table),
        "server": sql.Identifier(SERVER),
        "alone": sql.Identifier(ARCHIVE_FILES, _NEW.format(f"{table} alone")),
        "columns": sql.SQL(", ").join(_foreign(columns, keys, _domain)),
        "in_log": sql.SQL(", ").join(_foreign(columns, keys, _domain_in_log)),
        "hidden": sql.SQL(", ").join(_typed(columns, keys)),
        "options": sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.SQL(option), sql.Literal(value))
            for option, value in {
                "schema_name": ARCHIVE,
                "table_name": f"{table} none",
                "updatable": "false",
                "fetch_size": str(_FETCHED),
            }.items()
        ),
        "shown": sql.SQL(", ").join(_shown(columns, keys)),
    }
    for statement in (
        'create table {weeks} ({hidden}) partition by range ("time")',
        "create foreign table {files} ({in_log}) server {server} options ({options})",
        "create foreign table {alone} ({columns}) server {server} options ({options})",
        "create or replace view {view} as select {shown} from {alone}",
    ):
        yield sql.SQL(statement).format(**named)


def _replace(connection: sa.Connection, table: str) -> None:
    """Gives the new tables the names of the old ones, which no view reads any more."""
    names = [f"{table}{end}" for end in ("", " files", " alone")]
    _drop(connection, names)
    for name in names:
        new = _NEW.format(name)
        rename = sql.SQL("alter table {} rename to {}")
        run(connection, rename.format(sql.Identifier(ARCHIVE_FILES, new), sql.Identifier(name)))


def _drop(connection: sa.Connection, names: Collection[str]) -> None:
    """Drops these tables if they exist; a partition before its table."""
    existing = catalogue.relations(connection, [ARCHIVE_FILES], names)
    for relation, kind in sorted(existing.items(), reverse=True):
        run(
            connection,
            sql.SQL("drop {} {}").format(
                sql.SQL("foreign table" if kind == "f" else "table"), sql.Identifier(*relation)
            ),
        )


def _typed(columns: dict[str, str], keys: Collection[str]) -> Iterator[sql.Composed]:
    for name, kind in columns.items():
        domain = None if name in keys else _domain_in_log(kind)
        yield sql.SQL("{} {}").format(
            sql.Identifier(name), sql.SQL(kind) if domain is None else sql.Identifier(ARCHIVE_FILES, domain)
        )


def _foreign(
    columns: dict[str, str], keys: Collection[str], domain_of: Callable[[str], str | None]
) -> Iterator[sql.Composed]:
    for name, kind in columns.items():
        domain = None if name in keys else domain_of(kind)
        yield sql.SQL("{} {} options (column_name {})").format(
            sql.Identifier(name),
            sql.SQL(kind) if domain is None else sql.Identifier(ARCHIVE_FILES, domain),
            sql.Literal(f"{name}:{kind}"),
        )


def _shown(columns: dict[str, str], keys: Collection[str]) -> Iterator[sql.Composable]:
    for name, kind in columns.items():
        column = sql.Identifier(name)
        if name in keys or _domain(kind) is None:
            yield column
        else:
            yield sql.SQL("{0}::{1} as {0}").format(column, sql.SQL(kind))


_KINDS = (Kind.REAL, Kind.DOUBLE, Kind.INT, Kind.SMALLINT, Kind.BIGINT, Kind.BIT, Kind.TEXT)
_TYPES = {kind: ColumnType(kind).sql.lower() for kind in _KINDS}
_DOMAINS = (
    {"numeric": "numeric", "datetime": "timestamp with time zone"}
    | {name: name for name in _TYPES.values()}
    | {f"{name} array": f"{name}[]" for name in _TYPES.values()}
)


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


def _domain_in_log(kind: str) -> str | None:
    """The domain of a column in the log's foreign table. Only conditions on time and seq_no are sent, so
    PostgreSQL's calculations with other columns find the same rows."""
    column = ColumnType.of_postgresql(kind)
    if column is None or column.is_array or column.is_text:
        return _domain(kind)
    if column.kind is Kind.NUMERIC:
        return "numeric"
    return _TYPES.get(column.kind, "datetime")


def _of_nothing(table: str, columns: dict[str, str]) -> Iterator[sql.Composable]:
    """A view that fails with the reason why it has no rows."""
    shown = (
        sql.SQL("null::{} as {}").format(sql.SQL(kind), sql.Identifier(name))
        for name, kind in columns.items()
    )
    yield sql.SQL("create or replace view {} as select {} from ringlog.refuse_archive()").format(
        sql.Identifier(ARCHIVE, table), sql.SQL(", ").join(shown)
    )


def _make_server(connection: sa.Connection) -> bool:
    """Makes the foreign server and the domains. Returns whether that is possible."""
    usable = sa.text(
        "select exists (select from pg_foreign_data_wrapper where fdwname = :name"
        " and has_foreign_data_wrapper_privilege(current_user, fdwname, 'usage'))"
    )
    if not connection.scalar(usable, {"name": _EXTENSION}):
        return False
    _make_domains(connection)
    if connection.scalar(
        sa.text("select exists (select from pg_foreign_server where srvname = :name)"), {"name": SERVER}
    ):
        return True
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
    # the password is not sent to another program on the port of a server that is down
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


def _make_domains(connection: sa.Connection) -> None:
    there = sa.text("select typname from pg_type where typnamespace = to_regnamespace(:schema)")
    known = {*connection.scalars(there, {"schema": ARCHIVE_FILES})}
    for name, kind in _DOMAINS.items():
        if name not in known:
            domain = sql.Identifier(ARCHIVE_FILES, name)
            run(connection, sql.SQL("create domain {} as {}").format(domain, sql.SQL(kind)))


def _options(options: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.SQL(name), sql.Literal(value)) for name, value in options.items()
    )


def files(connection: sa.Connection, table: str) -> str:
    """The list of the files of a log's archived weeks, whose digest its foreign tables have."""
    become_owner(connection)
    # an installation may have locked the manifest, and wait for the query that needs the list
    run(connection, "set local lock_timeout = '5s'")
    return str(connection.scalar(sa.text("select ringlog.archived_files(:table)"), {"table": table}))


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


def is_there(connection: psycopg.Connection, table: str) -> bool:
    """Whether PostgreSQL can read the archived weeks of a log."""
    return bool(catalogue.relations(connection, [ARCHIVE_FILES], [table]))


def announced(connection: sa.Connection) -> tuple[str, int]:
    """Host and port at which PostgreSQL expects the archive server."""
    query = sa.text("select unnest(srvoptions) from pg_foreign_server where srvname = :name")
    options = dict(option.split("=", 1) for option in connection.scalars(query, {"name": SERVER}))
    return options["host"], int(options["port"])


def announce_server(connection: sa.Connection, host: str, port: int, password: str) -> None:
    """Stores the archive server's address and password in PostgreSQL."""
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
    """Drops the foreign tables, and the views, of tables that no longer exist."""
    query = sa.text(
        "select relname from pg_class where relnamespace = to_regnamespace(:schema)"
        " and relkind in ('p', 'f') and relname <> all(:names)"
    )
    known = [f"{table}{end}" for table in tables for end in ("", " files", " alone")]
    gone = connection.scalars(query, {"schema": ARCHIVE_FILES, "names": known}).all()
    for name in gone:
        view = sql.Identifier(ARCHIVE, name)
        run(connection, sql.SQL("drop view if exists {}").format(view))
    _drop(connection, gone)
