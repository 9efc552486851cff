"""Reads the catalogue of an old server, Sybase ASE or SQL Server, over TDS.

ASE's tables are of its Reference Manual: Tables (sysobjects, syscolumns, systypes, syscomments, sysprotects,
syslogins); SQL Server's views of its System Catalog Views (sys.objects, sys.columns, sys.sql_modules, …).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pymssql

from ringlog.adoption import ase, left, sql_server
from ringlog.adoption.names import quoted
from ringlog.adoption.objects import Member, Module, Old, OldTable, Reference
from ringlog.adoption.owners import without_owners
from ringlog.adoption.parts import Parts, Rows
from ringlog.adoption.session import ABSENT, number, rows_of, words

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
# what servers before some version have not
_OPTIONAL = frozenset(
    {
        "computed",
        "charset",
        "sort_order",
        "left_references",
        "left_tables",
        "left_columns",
        "left_policies",
        "left_types",
    }
)
_BEFORE = r"(?:\s|--[^\n]*|/\*.*?\*/)*"
_FUNCTION = re.compile(rf"(?is){_BEFORE}create\s+function\b")
_ALTERED = re.compile(rf"(?is)\A({_BEFORE})alter\b")
_OWN_LOGINS = re.compile(r"##.*|sa|probe|NT .*|jstask|postgres|ringlog_.*|pg_.*", re.IGNORECASE)


def read(connection: pymssql.Connection, database: str) -> Old:
    """Reads the catalogue of the session's database. Raises pymssql.Error."""
    with connection.cursor() as cursor:
        cursor.execute("select @@version")
        version = str(rows_of(cursor)[0][0])
        is_ase = _is_ase(cursor, version)
        unread: list[str] = []

        def asked(name: str) -> Rows:
            missing = unread if name not in _OPTIONAL else []
            return _asked(cursor, f"ase_{name}" if is_ase else name, name, missing)

        hidden = Hidden()
        parts = ase.table_parts(asked) if is_ase else sql_server.table_parts(asked)
        if is_ase:
            ase.add_last_identities(cursor, parts)
        pages = {} if is_ase else _code_pages(cursor, parts)
        reported = [*parts.left, *(left.of_ase(asked) if is_ase else left.of_sql_server(asked))]
        said, said_of_columns = ({}, {}) if is_ase else left.descriptions(asked, reported)
        keys, constraints, indexes = (
            ase.indexes(cursor, unread, reported) if is_ase else sql_server.indexes(asked("keys"))
        )
        tables = []
        for owner, name, rows in asked("tables"):
            place = str(owner), str(name)
            if place in parts.columns and hidden.is_first("table", *place):
                count = _rows(cursor, *place, rows, reported)
                tables.append(
                    OldTable(
                        str(name),
                        tuple(
                            replace(
                                column,
                                code_page=pages.get(column.code_page, ""),
                                description=said_of_columns.get((*place, column.name), ""),
                            )
                            for column in parts.columns[place]
                        ),
                        tuple(keys.get(place, ())),
                        count,
                        tuple(parts.checks.get(place, ())),
                        tuple(parts.references.get(place, ())),
                        tuple(indexes.get(place, ())),
                        tuple(constraints.get(place, ())),
                        str(owner),
                        said.get(place, ""),
                    )
                )
        tables = [
            replace(table, references=tuple(hidden.referred(table.name, table.references)))
            for table in tables
        ]
        reported += left.of_collations(parts.columns)
        modules = tuple(_modules(asked("modules"), hidden, reported))
        hidden.report_named(modules)
        owned: dict[str, set[str]] = defaultdict(set)
        for owner, name in ((each.owner, each.name) for of in (tables, modules) for each in of):
            owned[owner.lower()].add(name.lower())
        modules = tuple(replace(each, text=without_owners(each.text, owned, database)) for each in modules)
        if is_ase:
            grants = ase.grants(asked("grants"), {table.name: table for table in tables})
            members = [*_members(asked("members")), *_members(asked("role_members"))]
            charset = next((str(name) for (name,) in asked("charset")), "")
        else:
            read = [
                *(table.name for table in tables),
                *(each.name for each in modules if each.kind == "view"),
            ]
            called = [each.name for each in modules if each.kind in ("procedure", "function")]
            grants, members = sql_server.grants(asked("grants"), read, called), _members(asked("members"))
            charset = ""
        users = tuple((str(user), str(login or "")) for user, login in asked("users"))
        logins = tuple(
            str(name) for (name,) in asked("logins") if not _OWN_LOGINS.fullmatch(str(name).strip())
        )
    return Old(
        version,
        is_ase,
        tuple(tables),
        modules,
        tuple(grants),
        logins,
        tuple(unread),
        tuple(members),
        users,
        tuple(hidden.reported),
        charset,
        tuple(reported),
    )


class Hidden:
    """Reports objects whose name another owner's object has already: here a name has no owner."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], tuple[str, str]] = {}
        self._others: dict[tuple[str, str], tuple[str, str]] = {}
        self.reported: list[str] = []

    def is_first(self, kind: str, owner: str, name: str) -> bool:
        first = self._first.setdefault((kind, name.lower()), (owner, name))
        if first == (owner, name):
            return True
        if self._others.setdefault((owner, name), first) == first:
            why = (
                f"{first[0]} has one of this name, and here names have no owner"
                if first[0] != owner
                else f"there is {first[1]} beside it, and here names differ by more than their case"
            )
            line = f"{kind} {owner}.{name}: {why}"
            if line not in self.reported:
                self.reported.append(line)
        return False

    def referred(self, table: str, references: Iterable[Reference]) -> Iterator[Reference]:
        """Foreign keys without those to a table that has not come."""
        for each in references:
            if not each.owner or self._first.get(("table", each.table.lower())) == (each.owner, each.table):
                yield each
            else:
                self.reported.append(
                    f"foreign key {each.name} of {table} is not migrated: "
                    f"it refers to {each.owner}.{each.table}"
                )

    def report_named(self, modules: Iterable[Module]) -> None:
        """Reports texts that name an object which is not migrated."""
        for (owner, name), (first, _) in self._others.items():
            if owner == first:
                continue
            of = re.compile(_part(owner) + r"\s*\.\s*" + _part(name), re.IGNORECASE)
            if named := [module.name for module in modules if of.search(module.text)]:
                self.reported.append(
                    f"{left.listed(named)}: the text names {owner}.{name}, which is not migrated"
                )


def _part(name: str) -> str:
    """A pattern of one part of a name in a text."""
    return rf'(?<![\w$#@])[\["]?{re.escape(name)}[\]"]?(?![\w$#@])'


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
        if number(error) not in ABSENT:
            raise
        unread.append(f"{what}: {words(error)}")
        return []


def _code_pages(cursor: Any, parts: Parts) -> dict[str, str]:
    """The code page of each collation."""
    found: dict[str, str] = {}
    for collation in {column.code_page for columns in parts.columns.values() for column in columns} - {""}:
        try:
            cursor.execute(f"select collationproperty('{collation}', 'CodePage')")
            found[collation] = str(cursor.fetchall()[0][0] or "")
        except pymssql.Error:
            found[collation] = "65001" if collation.upper().endswith("_UTF8") else ""
    return found


def _rows(cursor: Any, owner: str, table: str, reported: Any, unread: list[str]) -> int:
    if reported is not None and int(reported) > _COUNTED:
        return int(reported)
    try:
        cursor.execute(f"select count(*) from {quoted(owner)}.{quoted(table)}")
        return int(cursor.fetchall()[0][0])
    except pymssql.Error as error:
        if number(error) not in ABSENT:
            raise
        unread.append(f"the rows of table {table} cannot be read: {words(error)}")
        return 0


def _modules(rows: Rows, hidden: Hidden, left_: list[str]) -> Iterator[Module]:
    """ASE gives texts in pieces; those of one object come one after the other."""
    texts: dict[tuple[str, str], str] = {}
    quoted_: dict[tuple[str, str], bool] = {}
    owners: dict[tuple[str, str], str] = {}
    unknown_nulls: list[str] = []
    for owner, plain, kind, place, text, *settings in rows:
        name = str(plain) if int(place or 1) == 1 else f"{plain};{place}"
        key = _KINDS[str(kind).strip()], name
        if hidden.is_first(key[0], str(owner), name):
            texts[key] = texts.get(key, "") + ("" if text is None else str(text))
            owners[key] = str(owner)
            if settings and settings[0] is not None:
                quoted_[key] = bool(settings[0])
                if not settings[1]:
                    unknown_nulls.append(name)
    for (kind, name), text in texts.items():
        plain = name.partition(";")[0]
        if text.strip() and not re.search(_part(plain), text, re.IGNORECASE):
            left_.append(f"{kind} {name} has another name in its text: it was renamed there; rename it here")
        # ringlog as the old server gives the last text, and has procedures and functions as one
        text = _ALTERED.sub(r"\1create", text, count=1)
        is_function = kind == "procedure" and _FUNCTION.match(text)
        key = kind, name
        yield Module("function" if is_function else kind, name, text, quoted_.get(key), owners[key])
    if unknown_nulls:
        left_.append(
            f"{left.listed(unknown_nulls)}: made with ansi_nulls off, under which NULL = NULL is true; "
            "here it is unknown"
        )


def _members(rows: Rows) -> list[Member]:
    return [Member(str(role), str(who)) for role, who in rows if not _OWN_LOGINS.fullmatch(str(who))]
