"""What an old server says of itself: Sybase ASE and SQL Server through their own catalogues, over TDS.

ASE's tables are of its Reference Manual: Tables (sysobjects, syscolumns, systypes, syscomments, sysprotects,
syslogins); SQL Server's views of its System Catalog Views (sys.objects, sys.columns, sys.sql_modules, …).
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any

import pymssql
from pymssql import _mssql

from ringlog.clients import Address

SYBASE = "5.0"
_YEAR_0 = timedelta(days=366)
_TIMEOUT = 600  # seconds for one answer
_COUNTED = 10_000_000  # rows; of larger tables the server's own word is taken
_KINDS = {
    "P": "procedure",
    "V": "view",
    "TR": "trigger",
    "FN": "function",
    "IF": "function",
    "TF": "function",
    "SF": "function",
}
# sysprotects.action and protecttype of ASE
_ACTIONS = {193: "SELECT", 195: "INSERT", 196: "DELETE", 197: "UPDATE", 224: "EXECUTE", 151: "REFERENCES"}
_REVOKED = 2
# clauses that are lost are told by number: no such object, column, or permission
_ABSENT = frozenset({207, 208, 229, 911})
_OWN_LOGINS = re.compile(r"##.*|sa|probe|NT .*|jstask|postgres|ringlog_.*|pg_.*", re.IGNORECASE)


@dataclass(frozen=True)
class OldColumn:
    """A column; `length` in bytes."""

    name: str
    type: str
    length: int
    precision: int
    scale: int
    nullable: bool

    @property
    def declared(self) -> str:
        """Its type as `create table` says it."""
        if self.type in ("varchar", "char", "binary", "varbinary"):
            return f"{self.type}({'max' if self.length < 0 else self.length})"
        if self.type in ("nvarchar", "nchar", "univarchar", "unichar"):
            return f"{self.type}({'max' if self.length < 0 else self.length // 2})"
        if self.type in ("decimal", "numeric"):
            return f"{self.type}({self.precision}, {self.scale})"
        return self.type


@dataclass(frozen=True)
class OldTable:
    name: str
    columns: tuple[OldColumn, ...]
    keys: tuple[tuple[str, ...], ...]
    """columns of its unique indexes, the primary key first"""
    rows: int

    def column(self, name: str) -> OldColumn | None:
        return next((column for column in self.columns if column.name == name), None)

    @property
    def bytes(self) -> int:
        """About what the rows take, by the width of the columns."""
        return self.rows * sum(max(column.length, 8) for column in self.columns)


@dataclass(frozen=True)
class Module:
    """A procedure, view, trigger or function with its T-SQL, which is "" when the server does not give it."""

    kind: str
    name: str
    text: str


@dataclass(frozen=True)
class Grant:
    who: str
    right: str
    what: str


@dataclass(frozen=True)
class Old:
    """The catalogue of one database."""

    version: str
    is_ase: bool
    tables: tuple[OldTable, ...]
    modules: tuple[Module, ...]
    grants: tuple[Grant, ...]
    logins: tuple[str, ...]
    unread: tuple[str, ...] = field(default=())
    """what the server did not tell, with its words"""


@contextmanager
def connected(address: Address, password: str, version: str) -> Iterator[pymssql.Connection]:
    """A session at the old server. `version` is 5.0 for ASE, 7.0 to 7.4 for SQL Server."""
    # pymssql has no name for 5.0; FreeTDS, which it is made of, takes it from the environment
    if version == SYBASE:
        os.environ["TDSVER"] = version
        # messages are of severity 10 there, and no errors
        _mssql.min_error_severity = 11
    connection = pymssql.connect(
        server=address.host,
        port=str(address.port),
        user=address.user,
        password=password,
        database=address.database,
        appname="ringlog adopt",
        tds_version=None if version == SYBASE else version,
        autocommit=True,
        conn_properties="",
        login_timeout=30,
        timeout=_TIMEOUT,
    )
    try:
        yield connection
    finally:
        connection.close()


def read(connection: pymssql.Connection) -> Old:
    """Reads the catalogue of the session's database. Raises pymssql.Error."""
    with connection.cursor() as cursor:
        cursor.execute("select @@version")
        version = str(rows_of(cursor)[0][0])
        is_ase = _is_ase(cursor, version)
        unread: list[str] = []

        def asked(name: str) -> list[tuple[Any, ...]]:
            return _asked(cursor, f"ase_{name}" if is_ase else name, name, unread)

        columns = _columns(asked("columns"))
        keys = _ase_keys(cursor, columns, unread) if is_ase else _keys(asked("keys"))
        tables = tuple(
            OldTable(str(name), columns[name], keys.get(name, ()), _rows(cursor, str(name), rows))
            for name, rows in asked("tables")
            if name in columns
        )
        modules = tuple(_modules(asked("modules")))
        grants = tuple(_grants(asked("grants"), is_ase))
        logins = tuple(
            str(name) for (name,) in asked("logins") if not _OWN_LOGINS.fullmatch(str(name).strip())
        )
    return Old(version, is_ase, tables, modules, grants, logins, tuple(unread))


def rows_of(cursor: Any) -> list[tuple[Any, ...]]:
    """All rows of what a cursor has asked, in whatever types the server has them."""
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def moment(value: Any) -> Any:
    """A time as Python has it; pymssql gives a bigdatetime of TDS 5.0 as its eight bytes.

    They are microseconds since the first day of the year 0 (SAP ASE, Reference Manual: bigdatetime).
    """
    if isinstance(value, bytes) and len(value) == 8:
        return datetime(1, 1, 1) + timedelta(microseconds=int.from_bytes(value, "little")) - _YEAR_0
    return value


def quoted(name: str) -> str:
    """A name as either server takes it in a text."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    return '"' + name.replace('"', '""') + '"'


def _is_ase(cursor: Any, version: str) -> bool:
    if "Adaptive Server" in version or "SQL Server/1" in version:
        return True
    try:
        cursor.execute("select count(*) from sys.sql_modules where 1 = 0")
        cursor.fetchall()
    except pymssql.Error:
        return True
    return False


def _asked(cursor: Any, file: str, what: str, unread: list[str]) -> list[tuple[Any, ...]]:
    try:
        cursor.execute(files(__name__.rpartition(".")[0]).joinpath("sql", f"{file}.sql").read_text())
        return rows_of(cursor)
    except pymssql.Error as error:
        if number(error) not in _ABSENT:
            raise
        unread.append(f"{what}: {words(error)}")
        return []


def number(error: pymssql.Error) -> int:
    """The number of the server's error."""
    first = error.args[0] if error.args else 0
    while isinstance(first, tuple):
        first = first[0]
    return first if isinstance(first, int) else 0


def words(error: pymssql.Error) -> str:
    """What the server said."""
    said = error.args[1] if len(error.args) > 1 else error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return text.partition("DB-Lib error")[0].strip()


def _columns(rows: Sequence[tuple[Any, ...]]) -> dict[str, tuple[OldColumn, ...]]:
    found: dict[str, list[OldColumn]] = {}
    for table, name, kind, length, precision, scale, nullable in rows:
        column = OldColumn(
            str(name), str(kind), int(length or 0), int(precision or 0), int(scale or 0), bool(nullable)
        )
        found.setdefault(str(table), []).append(column)
    return {table: tuple(columns) for table, columns in found.items()}


def _keys(rows: Sequence[tuple[Any, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
    found: dict[str, dict[str, tuple[bool, list[str]]]] = {}
    for table, index, column, primary in rows:
        found.setdefault(str(table), {}).setdefault(str(index), (bool(primary), []))[1].append(str(column))
    return {
        table: tuple(tuple(columns) for _, columns in sorted(indexes.values(), key=lambda each: not each[0]))
        for table, indexes in found.items()
    }


def _ase_keys(
    cursor: Any, columns: dict[str, tuple[OldColumn, ...]], unread: list[str]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """By index_col, which gives the columns of an index one by one; bit 2 of the status: it is unique."""
    text = (
        "select o.name, i.name, i.indid from sysobjects o, sysindexes i"
        " where o.type = 'U' and i.id = o.id and i.status & 2 = 2 and i.indid > 0"
    )
    found: dict[str, list[tuple[str, ...]]] = {}
    try:
        cursor.execute(text)
        for table, _, index in cursor.fetchall():
            places = ", ".join(f"index_col('{table}', {int(index)}, {place})" for place in range(1, 9))
            cursor.execute(f"select {places}")
            names = [str(name) for name in cursor.fetchall()[0] if name is not None]
            known = {column.name for column in columns.get(str(table), ())}
            found.setdefault(str(table), []).append(tuple(name for name in names if name in known))
    except pymssql.Error as error:
        unread.append(f"unique indexes: {words(error)}")
    return {table: tuple(keys) for table, keys in found.items()}


def _rows(cursor: Any, table: str, told: Any) -> int:
    if told is not None and int(told) > _COUNTED:
        return int(told)
    cursor.execute(f"select count(*) from {quoted(table)}")
    return int(cursor.fetchall()[0][0])


def _modules(rows: Sequence[tuple[Any, ...]]) -> Iterator[Module]:
    """ASE gives texts in pieces; those of one object come one after the other."""
    texts: dict[tuple[str, str], str] = {}
    for name, kind, text in rows:
        key = _KINDS[str(kind).strip()], str(name)
        texts[key] = texts.get(key, "") + ("" if text is None else str(text))
    for (kind, name), text in texts.items():
        yield Module(kind, name, text)


def _grants(rows: Sequence[tuple[Any, ...]], is_ase: bool) -> Iterator[Grant]:
    for who, right, what, state in rows:
        if is_ase:
            if int(state) != _REVOKED and int(right) in _ACTIONS:
                yield Grant(str(who), _ACTIONS[int(right)], str(what))
        elif str(state).startswith("GRANT"):
            yield Grant(str(who), str(right), str(what))
