"""How it is written and read: the SQL of every stored procedure, one concern a file.

The files are templates of psycopg.sql, which quotes what is filled in.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from hashlib import sha256
from importlib.resources import files

from psycopg import sql

SCHEMA = "ringlog"

OF_A_TABLE = {
    "put": "put_{}",
    "put_claimed": "put_{}_claimed",
    "put_batch": "put_{}_batch",
    "get": "get_{}",
    "get_at": "get_{}_at",
    "get_range": "get_{}_range",
    "last": "last_{}",
}
"""What each table has: file, and name of the procedure."""

OVER_ALL_TABLES = (
    "get_signal",
    "get_latest",
    "find_signals",
    "claim_writer",
    "release_writer",
    "tell_writer",
    "tell_ledger",
    "tell_event",
    "losses",
)
"""Names, of files as of procedures."""

SYSTEM_SCHEMAS = ("sys", "sybsystemprocs", "tsql_information_schema", "tsql")
"""What T-SQL calls the system: its catalogue views, functions and procedures; those that TDS 5.0 has in
another form; its INFORMATION_SCHEMA; what queries in T-SQL become. The first two are named as in SQL Server
and in ASE."""

_SYSTEM = (
    "clear",
    "types",
    "databases",
    "principals",
    "objects",
    "columns",
    "indexes",
    "constraints",
    "modules",
    "names",
    "properties",
    "information_schema",
    "calling",
    "sp_tables",
    "sp_columns",
    "sp_stored_procedures",
    "sp_keys",
    "sp_privileges",
    "sp_statistics",
    "sp_databases",
    "sp_helpindex",
    "sp_helptext",
    "sp_help",
    "sp_spaceused",
    "sp_who",
    "sp_lock",
    "sp_rename",
    "sp_applock",
    "sp_sysmon",
    "elsewhere",
    "rights",
)
# files in system/, each after those it needs

_LOCK = 0x72696E67  # "ring", the class of the advisory locks of put
_CLAIM_LOCK = 0x636C6169  # "clai", that of the claims


@dataclass(frozen=True)
class Procedure:
    """A procedure of schema `ringlog`: its name, and the SQL that makes it, explains it and grants it."""

    name: str
    source: str

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()


def table_procedures(
    table: str, rows: int, columns: Sequence[str], nth: int = 1, period: float | None = None
) -> Iterator[Procedure]:
    """The procedures of a table with a ring of `rows` rows.

    `columns` are the data columns in the order the ring has them. `nth` and `period` (seconds) say which rows
    go to the log: see ringlog.schema.facility.LogPolicy.
    """
    ring, log = sql.Identifier("online", table), sql.Identifier("log", table)
    every_column = ["seq_no", "time", *columns]
    of_the_table = {
        "ring": ring,
        "log": log,
        "ring_name": sql.Literal(ring.as_string()),
        "rows": sql.Literal(rows),
        "columns": _list(sql.Identifier(column) for column in columns),
        "values": _list(sql.Identifier("r", column) for column in columns),
        "assignments": _list(
            sql.SQL("{} = {}").format(sql.Identifier(column), sql.Identifier("r", column))
            for column in columns
        ),
        "ring_columns": _list(sql.Identifier("ring", column) for column in every_column),
        "log_columns": _list(sql.Identifier("logged", column) for column in every_column),
        "nth": sql.Literal(nth),
        "period": sql.Literal(None if period is None else timedelta(seconds=period)),
        "lock": sql.Literal(_LOCK),
        "claim_lock": sql.Literal(_CLAIM_LOCK),
        "table": sql.Literal(table),
        "put": sql.Identifier(SCHEMA, OF_A_TABLE["put"].format(table)),
        "claimed": sql.Identifier(SCHEMA, OF_A_TABLE["put_claimed"].format(table)),
    }
    for file, pattern in OF_A_TABLE.items():
        name = pattern.format(table)
        of_the_procedure = {
            "procedure": sql.Identifier(SCHEMA, name),
            "this": sql.Identifier(name),
            "name": sql.Literal(name),
        }
        template = sql.SQL(_read(file))
        yield Procedure(name, template.format(**of_the_table, **of_the_procedure).as_string())


def shared_procedures() -> Iterator[Procedure]:
    """The procedures over all tables."""
    for name in OVER_ALL_TABLES:
        yield Procedure(name, _read(name).replace("{claim_lock}", str(_CLAIM_LOCK)))


def system_script() -> Procedure:
    """What makes the system schemas all anew: run as their owner, in one transaction."""
    return Procedure("sys", "\n".join(_read(f"system/{file}") for file in _SYSTEM))


@cache
def _read(file: str) -> str:
    return files(__name__).joinpath(f"{file}.sql").read_text()


def _list(parts: Iterable[sql.Composable]) -> sql.SQL:
    # one text: a Composed of thousands of names would be walked anew for each place it is put in
    return sql.SQL(", ".join(part.as_string() for part in parts))
