"""Reading a log: get_<table>_range through TDS, and the same rows by COPY directly from PostgreSQL."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from ringlog.history.closing import close
from ringlog.history.summaries.summarising import summarise
from ringlog.loadtest.experiment.errors import LoadTestError
from ringlog.loadtest.experiment.facility import Tables
from ringlog.loadtest.experiment.server import READER, Server, conninfo_of, log_rows
from ringlog.schema import session
from ringlog_lab.bench.asking import asking
from ringlog_lab.native_load import GATEWAY, Contender

COPY = "copy"
"""The contender that is compared with GATEWAY: psycopg's COPY in binary."""


@dataclass(frozen=True)
class Reading:
    """One reading of all rows. Times and CPU in seconds."""

    contender: str
    round: int
    rows: int
    columns: int
    bytes: int
    """bytes received on the connection"""
    seconds: float
    client: float
    gateway: float
    postgres: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def fill(administrator: psycopg.Connection, tables: Tables, rows: int) -> None:
    """Fills the log of the first of these tables with a number of rows, a millisecond apart, from the begin
    of the week, and settles it.
    """
    log = sql.Identifier("log", tables.names[0])
    values = sql.SQL(", ").join([sql.SQL("(random() * 1000)::real")] * tables.columns)
    columns = sql.SQL(", ").join(map(sql.Identifier, tables.column_names))
    statement = sql.SQL(
        "insert into {log} (seq_no, time, {columns})"
        " select 1 + n % {ring},"
        " date_trunc('week', now() - interval '1 hour') + n * interval '1 ms', {values}"
        " from generate_series(0, {rows} - 1) as n"
    )
    administrator.execute(
        statement.format(
            log=log, columns=columns, values=values, ring=sql.Literal(tables.rows), rows=sql.Literal(rows)
        )
    )
    administrator.execute(sql.SQL("vacuum analyze {}").format(log))
    found = log_rows(administrator, tables.names[0])
    if found != rows:
        raise LoadTestError(f"the log to be read has {found} rows instead of {rows}")
    settle(administrator, tables.names[0])


def settle(administrator: psycopg.Connection, table: str) -> None:
    """Makes summaries and blocks of a log's rows: no measurement then runs at the same time, or reads rows
    first and blocks later.
    """
    conninfo = conninfo_of(administrator)
    while not _summarised(administrator, table):
        if not summarise(conninfo, enough=1):
            time.sleep(0.2)  # a transaction continues
    while not close(conninfo, pauses=0).complete:
        pass


def _summarised(administrator: psycopg.Connection, table: str) -> bool:
    """Whether all rows except those of the last minute are summarised."""
    found = administrator.execute(
        sql.SQL(
            "select until > (select max(time) from {}) - interval '1 minute'"
            " from ringlog.summarised where table_name = %s and levels <> '{{}}'"
        ).format(sql.Identifier("log", table)),
        [table],
    ).fetchone()
    return found is None or bool(found[0])


def read_alternating(
    programs: Path, server: Server, tables: Tables, rounds: int, rows: int
) -> Iterator[Reading]:
    """Each contender reads the first `rows` in each round, after one reading that does not count."""
    procedure = f"get_{tables.names[0]}_range"
    with ExitStack() as stack:
        readers: dict[str, Callable[[], dict[str, Any]]] = {
            one.key: stack.enter_context(_tds_reader(programs, server, procedure, one, rows))
            for one in GATEWAY
        }
        readers[COPY] = stack.enter_context(_copy_reader(server, procedure, rows))
        for round in range(-1, rounds):
            for key, read in _turned(readers, round):
                before = server.mark()
                result = read()
                after = server.mark()
                if result["rows"] != rows:
                    raise LoadTestError(f"{procedure} gave {result['rows']} rows to {key} instead of {rows}")
                reading = Reading(
                    contender=key,
                    round=round,
                    columns=tables.columns,
                    gateway=after.gateway - before.gateway,
                    postgres=after.postgres - before.postgres,
                    **result,
                )
                if round >= 0:
                    yield reading


def _turned(
    readers: Mapping[str, Callable[[], dict[str, Any]]], round: int
) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    items = [*readers.items()]
    start = round % len(items)
    return items[start:] + items[:start]


@contextmanager
def _tds_reader(
    programs: Path, server: Server, procedure: str, contender: Contender, rows: int
) -> Iterator[Callable[[], dict[str, Any]]]:
    command = [str(programs / "tdsread"), "-h", server.host, "-p", str(server.port), "-u", READER]
    command += ["-v", contender.version, "-x", procedure, "-r", str(rows)]
    with asking(command, server.password, contender.title) as answer:
        yield lambda: dict(json.loads(answer("read")))


@contextmanager
def _copy_reader(server: Server, procedure: str, rows: int) -> Iterator[Callable[[], dict[str, Any]]]:
    query = sql.SQL("copy (select * from {}(max_rows => {})) to stdout (format binary)").format(
        sql.Identifier("ringlog", procedure), sql.Literal(rows)
    )
    with session.connect(server.conninfo(READER), autocommit=True) as connection:

        def read() -> dict[str, Any]:
            began, cpu, size = time.monotonic(), time.process_time(), 0
            with connection.cursor() as cursor:
                with cursor.copy(query) as copy:
                    for data in copy:
                        size += len(data)
                return {
                    "rows": cursor.rowcount,
                    "bytes": size,
                    "seconds": time.monotonic() - began,
                    "client": time.process_time() - cpu,
                }

        yield read
