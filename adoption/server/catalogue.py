"""Reads the catalogue of an old server, Sybase ASE or SQL Server, over TDS.

ASE's tables are of its Reference Manual: Tables (sysobjects, syscolumns, systypes, syscomments, sysprotects,
syslogins); SQL Server's views of its System Catalog Views (sys.objects, sys.columns, sys.sql_modules, …).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pymssql

from ringlog.adoption.conversion.object_names import ObjectNames
from ringlog.adoption.conversion.owners import BEFORE, renamed, without_owners
from ringlog.adoption.server import ase, collations, dynamic, left, sql_server
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Grant, Member, Module, Old, OldColumn, OldTable
from ringlog.adoption.server.parts import Parts, Query, Rows
from ringlog.adoption.server.session import ABSENT, is_of_server, message_of, number, rows_of
from ringlog.schema.sql_files import sql_file

_COUNTED = 10_000_000  # rows; of larger tables the server's number is used
_KINDS = {
    "P": "procedure",
    "V": "view",
    "TR": "trigger",
    "FN": "function",
    "IF": "function",
    "TF": "function",
    "SF": "function",
}
# missing in servers before some version
_OPTIONAL = frozenset(
    {
        "computed",
        "charset",
        "collation",
        "sort_order",
        "left_references",
        "left_tables",
        "left_columns",
        "left_policies",
        "left_types",
    }
)
# required of every database
_NEEDED = frozenset({"tables", "columns", "modules"})
_FUNCTION = re.compile(rf"(?is){BEFORE}create\s+function\b")
_ALTERED = re.compile(rf"(?is)\A({BEFORE})alter\b")
_OWN_LOGINS = re.compile(r"##.*|sa|probe|NT .*|jstask|postgres|ringlog_.*|pg_.*", re.IGNORECASE)


def read(connection: pymssql.Connection, named: str) -> Old:
    """Reads the catalogue of the session's database, which has this name. Raises pymssql.Error."""
    database = named.lower()
    with connection.cursor() as cursor:
        cursor.execute("select @@version")
        version = str(rows_of(cursor)[0][0])
        is_ase = _is_ase(cursor, version)
        unread: list[str] = []

        def query(name: str) -> Rows:
            return _answer(cursor, "ase" if is_ase else "sql_server", name, unread)

        parts = ase.table_parts(query) if is_ase else sql_server.table_parts(query)
        if is_ase:
            ase.add_last_identities(cursor, parts)
        pages = {} if is_ase else _code_pages(cursor, parts)
        collation = _collation(query, is_ase)
        reported = [*parts.left, *(left.of_ase(query) if is_ase else left.of_sql_server(query))]
        descriptions, of_columns = ({}, {}) if is_ase else left.descriptions(query, reported)
        keys, constraints, indexes = (
            ase.indexes(cursor, unread, reported) if is_ase else sql_server.indexes(query("keys"))
        )
        found_tables, found_modules = query("tables"), query("modules")
        object_names = _object_names(found_tables, found_modules)
        by_owner = object_names.by_owner()
        here_in = partial(without_owners, names=by_owner, database=database)

        def table(here: str, full_name: tuple[str, str], rows: object) -> OldTable:
            columns = (
                _here(each, here_in, pages, collation, of_columns.get((*full_name, each.name), ""))
                for each in parts.columns[full_name]
            )
            checks = parts.checks.get(full_name, ())
            references = object_names.referred(here, tuple(parts.references.get(full_name, ())))
            return OldTable(
                here,
                tuple(columns),
                tuple(keys.get(full_name, ())),
                _rows(cursor, *full_name, rows, reported),
                tuple(replace(check, condition=here_in(check.condition)) for check in checks),
                tuple(replace(reference, table=there) for reference, there in references),
                tuple(indexes.get(full_name, ())),
                tuple(constraints.get(full_name, ())),
                full_name[0],
                descriptions.get(full_name, ""),
                full_name[1],
                named,
            )

        listed = [((str(owner), str(name)), rows) for owner, name, rows in found_tables]
        tables = [
            table(here, full_name, rows)
            for full_name, rows in listed
            if full_name in parts.columns and (here := object_names.new_name(*full_name)) is not None
        ]
        reported += left.of_collations(parts.columns)
        found = _modules(found_modules, object_names, reported)
        modules = tuple(replace(renamed(each, by_owner, database), database=database) for each in found)
        reported += dynamic.names_in_dynamic_sql(modules, by_owner, database, is_ase)
        grants, members = _rights(query, is_ase, tables, modules, by_owner)
        begins, users, logins = _accounts(query)
        charset = next((str(name) for (name,) in query("charset")), "") if is_ase else ""
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
        (*object_names.reported, *object_names.without_owner()),
        charset,
        tuple(reported),
        database,
        by_owner,
        begins,
        collations.of_database(collation),
    )


def _rights(
    query: Query,
    is_ase: bool,
    tables: Sequence[OldTable],
    modules: Sequence[Module],
    names: Mapping[str, Mapping[str, str]],
) -> tuple[list[Grant], list[Member]]:
    """The rights to these objects, and the members of roles and groups."""
    if is_ase:
        named = {(table.owner, table.there): table for table in tables}
        members = [*_members(query("members")), *_members(query("role_members"))]
        return ase.grants(query("grants"), named, names), members
    objects = [
        *((table.owner, table.name, False) for table in tables),
        *((each.owner, each.name, each.kind != "view") for each in modules if each.kind != "trigger"),
    ]
    return sql_server.grants(query("grants"), objects, names), _members(query("members"))


def _collation(query: Query, is_ase: bool) -> str:
    if is_ase:
        names = [str(name) for (name,) in query("sort_order")]
        is_kept = any("nocase" in name for name in names) and not any("noaccents" in name for name in names)
        return collations.OF_ASE if is_kept else collations.BINARY
    return next((str(name) for (name,) in query("collation") if name), collations.BINARY)


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


def _answer(cursor: Any, server: str, name: str, unread: list[str]) -> list[tuple[Any, ...]]:
    try:
        cursor.execute(sql_file(__file__, f"{server}/{name.replace('left_', 'left/')}"))
        return rows_of(cursor)
    except pymssql.Error as error:
        if name in _NEEDED or not is_of_server(error):
            raise
        # servers that resemble SQL Server have other error numbers for missing views
        if number(error) not in ABSENT or name not in _OPTIONAL:
            unread.append(f"{name}: {message_of(error)}")
        return []


def _code_pages(cursor: Any, parts: Parts) -> dict[str, str]:
    found: dict[str, str] = {}
    for collation in {column.code_page for columns in parts.columns.values() for column in columns} - {""}:
        try:
            # a sql_variant, which not every driver reads
            cursor.execute(f"select convert(int, collationproperty('{collation}', 'CodePage'))")
            found[collation] = str(cursor.fetchall()[0][0] or "")
        except pymssql.Error:
            found[collation] = "65001" if collation.upper().endswith("_UTF8") else ""
    return found


def _object_names(tables: Rows, modules: Rows) -> ObjectNames:
    return ObjectNames(
        [
            *(("table", str(owner), str(name)) for owner, name, _ in tables),
            *((_kind(row), str(row[0]), _name(row)) for row in modules),
        ]
    )


def _here(
    column: OldColumn,
    here_in: Callable[[str], str],
    pages: Mapping[Any, str],
    collation: str,
    description: str,
) -> OldColumn:
    return replace(
        column,
        code_page=pages.get(column.code_page, ""),
        collation=collations.of_column(column.collation, collation),
        default=here_in(column.default),
        computed=here_in(column.computed),
        description=description,
    )


def _accounts(query: Query) -> tuple[dict[str, str], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The database in which each login begins, the users with their logins, and the logins."""
    begins = {str(login): str(there or "").lower() for login, there in query("login_databases")}
    users = tuple((str(user), str(login or "")) for user, login in query("users"))
    names = (str(name) for (name,) in query("logins"))
    return begins, users, tuple(name for name in names if not _OWN_LOGINS.fullmatch(name.strip()))


def _rows(cursor: Any, owner: str, table: str, reported: Any, unread: list[str]) -> int:
    if reported is not None and int(reported) > _COUNTED:
        return int(reported)
    try:
        cursor.execute(f"select count(*) from {quoted(owner)}.{quoted(table)}")
        return int(cursor.fetchall()[0][0])
    except pymssql.Error as error:
        if number(error) not in ABSENT:
            raise
        unread.append(f"the rows of table {table} cannot be read: {message_of(error)}")
        return 0


def _kind(row: Sequence[Any]) -> str:
    return _KINDS[str(row[2]).strip()]


def _name(row: Sequence[Any]) -> str:
    """The name of a module, with its number where it has one."""
    return str(row[1]) if int(row[3] or 1) == 1 else f"{row[1]};{row[3]}"


def _modules(rows: Rows, object_names: ObjectNames, left_: list[str]) -> Iterator[Module]:
    """ASE gives texts in pieces; those of one object come one after the other."""
    texts: dict[tuple[str, str, str], str] = {}
    quoted_: dict[tuple[str, str, str], bool] = {}
    unknown_nulls: list[str] = []
    for row in rows:
        owner, _, _, _, text, *settings = row
        name = _name(row)
        key = _kind(row), str(owner), name
        if object_names.new_name(*key[1:]) is not None:
            texts[key] = texts.get(key, "") + ("" if text is None else str(text))
            if settings and settings[0] is not None:
                quoted_[key] = bool(settings[0])
                if not settings[1]:
                    unknown_nulls.append(name)
    for key, text in texts.items():
        kind, owner, name = key
        plain = name.partition(";")[0]
        if text.strip() and not re.search(_part(plain), text, re.IGNORECASE):
            left_.append(f"{kind} {name} has another name in its text: it was renamed there; rename it here")
        # ringlog as the old server gives the last text, and has procedures and functions as one
        text = _ALTERED.sub(r"\1create", text, count=1)
        is_function = kind == "procedure" and _FUNCTION.match(text)
        yield Module("function" if is_function else kind, name, text, quoted_.get(key), owner)
    if unknown_nulls:
        left_.append(
            f"{left.listed(unknown_nulls)}: made with ansi_nulls off, under which NULL = NULL is true; "
            "here it is unknown"
        )


def _members(rows: Rows) -> list[Member]:
    return [Member(str(role), str(who)) for role, who in rows if not _OWN_LOGINS.fullmatch(str(who))]
