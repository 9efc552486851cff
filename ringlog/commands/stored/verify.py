"""`ringlog verify`: whether the stored data are complete, and match the registry."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg import sql

from ringlog.commands.options import Data, Dsn
from ringlog.copies.backup_set import checked
from ringlog.errors import UsageError
from ringlog.history import verification as history
from ringlog.history.verification import whole
from ringlog.loader.cli import option
from ringlog.nodes.servers import Everywhere, label
from ringlog.schema import session
from ringlog.schema.layout import LOG_TABLES
from ringlog.server.database import facility_opened


def verify(
    data: Data = None,
    dsn: Dsn = None,
    backup: Annotated[
        Path | None,
        option(
            metavar="DIR",
            help="Check the copies in this backup folder instead: every file against its checksum.",
        ),
    ] = None,
) -> None:
    """Check everything that is stored, on all servers: rings, logs, registry, indexes, pages, summaries,
    archive. Code 1: something is wrong, or a node cannot be reached.

    Writers and readers continue; reading everything takes a while.
    """
    if backup is not None:
        if data is not None or dsn is not None:
            raise UsageError("--backup checks a folder of copies: give neither --data nor --dsn")
        problems = list(checked(backup.resolve()))
        for problem in problems:
            print(problem)
        if problems:
            raise typer.Exit(1)
        print("no errors were found")
        return
    with facility_opened(data, dsn) as conninfo:
        servers = Everywhere(conninfo)
        any_problem = False
        for name, server in servers:
            if servers.nodes:
                print(f"{label(name)}:", flush=True)
            with session.connect(server, autocommit=True) as connection:
                problems = list(problems_of(connection))
            for problem in problems:
                print(problem)
            any_problem = any_problem or bool(problems)
        servers.demand_all()
    if any_problem:
        raise typer.Exit(1)
    print("no errors were found")


def problems_of(connection: psycopg.Connection) -> Iterator[str]:
    """A line for each defect."""
    tables = connection.execute(
        "select table_name, logged_table.rows, log_nth = 1 and log_period is null from ringlog.every_table"
        " left join ringlog.logged_table using (table_name) order by 1"
    ).fetchall()
    for table, rows, every in tables:
        print(f"table {table}", flush=True)
        if rows is None:
            # of samples: its ring are the newest rows of its log
            yield from _log(connection, table)
            continue
        yield from _registered(connection, table)
        ring, log = sql.Identifier("online", table), sql.Identifier(LOG_TABLES, table)
        yield from whole(connection, f"online.{table}", _ring(connection, table, ring, rows))
        yield from _log(connection, table)
        if every:
            yield from whole(connection, f"online.{table}", _ring_in_log(connection, table, ring, log))
    yield from _unregistered(connection)
    yield from _indexes(connection)
    yield from _checksums(connection)
    print("summaries and archive", flush=True)
    yield from history.problems_of(connection)


def _value(connection: psycopg.Connection, query: sql.Composed, *values: object) -> int:
    found = connection.execute(query, values).fetchone()
    return int(found[0]) if found and found[0] is not None else 0


def _registered(connection: psycopg.Connection, table: str) -> Iterator[str]:
    for schema in ("online", "log"):
        missing = connection.execute(
            "select column_name from ringlog.signal"
            " where table_name = %s and valid_to is null and not exists ("
            " select from pg_attribute where attrelid = to_regclass(%s) and attname = column_name"
            " and not attisdropped) order by 1",
            [table, sql.Identifier(schema, table).as_string()],
        ).fetchall()
        for (column,) in missing:
            yield f"{schema}.{table}: the registry has a column {column} that does not exist"


def _ring(connection: psycopg.Connection, table: str, ring: sql.Identifier, rows: int) -> Iterator[str]:
    missing = _value(
        connection,
        sql.SQL(
            "select count(*) from generate_series(1, %s) as wanted(seq_no)"
            " where not exists (select from {} as ring where ring.seq_no = wanted.seq_no)"
        ).format(ring),
        rows,
    )
    more = _value(
        connection, sql.SQL("select count(*) from {} where seq_no not between 1 and %s").format(ring), rows
    )
    if missing or more:
        yield f"online.{table}: {missing} of its {rows} rows are missing, {more} are too many"


def _log(connection: psycopg.Connection, table: str) -> Iterator[str]:
    """Reads every row: PostgreSQL checks the checksum of each page that it reads."""
    query = "select relname from pg_inherits join pg_class on oid = inhrelid where inhparent = %s::regclass"
    log = sql.Identifier(LOG_TABLES, table)
    for (name,) in connection.execute(f"{query} order by 1".encode(), [log.as_string()]).fetchall():
        # decodes all columns of a row, also those stored out of line
        read = sql.SQL("select sum(length((logged.*)::text)) from {} as logged")
        try:
            _value(connection, read.format(sql.Identifier("log", name)))
        except psycopg.Error as error:
            yield f"log.{name}: {error.diag.message_primary or error}"


def _ring_in_log(
    connection: psycopg.Connection, table: str, ring: sql.Identifier, log: sql.Identifier
) -> Iterator[str]:
    """Rows of the ring that are missing in the log although it has older ones, and retention has not removed
    their weeks."""
    lost = _value(
        connection,
        sql.SQL(
            'select count(*) from {ring} as ring where ring."time" is not null'
            ' and ring."time" >= (select min(logged."time") from {log} as logged)'
            ' and not exists (select from ringlog.dropped where table_name = %s and ring."time" < until)'
            " and not exists ("
            ' select from {log} as logged where logged."time" = ring."time"'
            " and logged.seq_no = ring.seq_no) and not exists ("
            " select from ringlog.cold_week as cold where cold.table_name = %s and recalled_until is null"
            ' and ring."time" >= cold.begins and ring."time" < cold.ends)'
        ).format(ring=ring, log=log),
        table,
        table,
    )
    if lost:
        yield f"online.{table}: {lost} rows are missing in log.{table}, which stores every row"


def _unregistered(connection: psycopg.Connection) -> Iterator[str]:
    found = connection.execute(
        "select nspname || '.' || relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace"
        " where nspname in ('online', 'weeks') and relkind in ('r', 'p') and not relispartition"
        " and relname not in (select table_name from ringlog.every_table) order by 1"
    ).fetchall()
    for (name,) in found:
        yield f"{name}: this table is not in the registry"


def _indexes(connection: psycopg.Connection) -> Iterator[str]:
    invalid = connection.execute(
        "select indexrelid::regclass::text from pg_index join pg_class on pg_class.oid = indexrelid"
        " join pg_namespace on pg_namespace.oid = relnamespace"
        " where nspname in ('online', 'log', 'weeks', 'ringlog') and not (indisvalid and indisready)"
        " order by 1"
    ).fetchall()
    for (name,) in invalid:
        yield f"index {name} is not valid: reindex it"
    if not connection.execute("select true from pg_available_extensions where name = 'amcheck'").fetchone():
        print("this PostgreSQL has no amcheck: indexes were not compared with their tables")
        return
    try:
        connection.execute("create extension if not exists amcheck with schema pg_catalog")
    except psycopg.errors.InsufficientPrivilege:
        print(
            "indexes were not compared with their tables: a superuser must run create extension amcheck once"
        )
        return
    indexes = connection.execute(
        "select indexrelid, indexrelid::regclass::text from pg_index"
        " join pg_class on pg_class.oid = indexrelid"
        " join pg_namespace on pg_namespace.oid = relnamespace"
        " join pg_am on pg_am.oid = relam"
        " where nspname in ('online', 'log', 'ringlog') and relkind = 'i' and amname = 'btree'"
        " order by 2"
    ).fetchall()
    ((schema,),) = connection.execute(
        "select nspname from pg_extension join pg_namespace on pg_namespace.oid = extnamespace"
        " where extname = 'amcheck'"
    ).fetchall()
    check = sql.SQL("select {}(%s::oid::regclass, true)").format(sql.Identifier(schema, "bt_index_check"))
    for oid, name in indexes:
        try:
            connection.execute(check, [oid])
        except psycopg.Error as error:
            yield f"index {name}: {error.diag.message_primary or error}"


def _checksums(connection: psycopg.Connection) -> Iterator[str]:
    ((on,),) = connection.execute("show data_checksums").fetchall()
    if on != "on":
        yield "data checksums are off: damage by disk or memory is not detected"
        return
    failures, last = connection.execute(
        "select coalesce(sum(checksum_failures), 0), max(checksum_last_failure) from pg_stat_database"
    ).fetchall()[0]
    if failures:
        yield f"{failures} pages had a wrong checksum, the last at {last}"
