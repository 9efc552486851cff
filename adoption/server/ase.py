"""Tables and rights from ASE's system tables (SAP ASE, Reference Manual: Tables)."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pymssql

from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import (
    NO_SCALE,
    Check,
    Grant,
    OldColumn,
    OldIndex,
    OldKey,
    OldTable,
    Reference,
)
from ringlog.adoption.server.parts import Parts, Query, Rows, TableName, condition_of_rule, default_of, joined
from ringlog.adoption.server.session import number

# sysprotects.action and protecttype
_ACTIONS = {
    151: "REFERENCES",
    193: "SELECT",
    195: "INSERT",
    196: "DELETE",
    197: "UPDATE",
    198: "CREATE TABLE",
    203: "CREATE DATABASE",
    207: "CREATE VIEW",
    221: "CREATE TRIGGER",
    222: "CREATE PROCEDURE",
    224: "EXECUTE",
    228: "DUMP DATABASE",
    233: "CREATE DEFAULT",
    235: "DUMP TRANSACTION",
    236: "CREATE RULE",
    282: "DELETE STATISTICS",
    320: "TRUNCATE TABLE",
    326: "UPDATE STATISTICS",
}
_STATES = {0: "grantable", 1: "granted", 2: "denied"}
# types that may be NULL have names of their own, by their length
_NULLABLE = {
    "intn": {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"},
    "uintn": {2: "unsigned smallint", 4: "unsigned int", 8: "unsigned bigint"},
    "floatn": {4: "real", 8: "float"},
    "moneyn": {4: "smallmoney", 8: "money"},
    "datetimn": {4: "smalldatetime", 8: "datetime"},
    "daten": {4: "date"},
    "timen": {4: "time"},
    "bigdatetimen": {8: "bigdatetime"},
    "bigtimen": {8: "bigtime"},
}
_OTHER = {"decimaln": "decimal", "numericn": "numeric", "sysname": "varchar", "longsysname": "varchar"}
_IGNORES, _UNIQUE, _PRIMARY = 1, 2, 2048  # sysindexes.status
# errors of an unknown function: ASE's, and ringlog's when it is the old server
_NO_FUNCTION = (195, 14216, 2812)
_TIMES = ("time", "bigtime", "bigdatetime")


def table_parts(query: Query) -> Parts:
    """Columns with their defaults, checks with rules, foreign keys."""
    parts = Parts()
    defaults = {key: default_of(text) for key, text in joined(query("defaults")).items()}
    computed = {
        key: re.sub(r"(?is)^\s*as\s+", "", text).strip() for key, text in joined(query("computed")).items()
    }
    wide = next((int(width) for (width,) in query("ncharsize")), 1)
    for owner, table, name, kind, length, precision, scale, nullable, _, _, identity, _ in query("columns"):
        full_name, key = (str(owner), str(table)), (str(owner), str(table), str(name))
        plain = _NULLABLE.get(str(kind), {}).get(int(length or 0), _OTHER.get(str(kind), str(kind)))
        bytes_ = int(length or 0)
        if plain in ("nchar", "nvarchar"):
            # the length is in bytes of the server's widest characters
            bytes_ = 2 * (int(precision) if precision else bytes_ // wide)
        column = OldColumn(
            str(name),
            plain,
            bytes_,
            int(precision or 0),
            NO_SCALE if plain in _TIMES else int(scale or 0),
            bool(nullable),
            defaults.get(key, ""),
            computed.get(key, ""),
        )
        parts.columns[full_name].append(replace(column, identity=(1, 1)) if identity else column)
    for (owner, table, name), text in joined(query("checks")).items():
        parts.checks[owner, table].append(Check(name, _condition(text)))
    for (owner, table, column_name, name), text in joined(query("rules")).items():
        parts.checks[owner, table].append(
            Check(f"{name}_{column_name}", condition_of_rule(text, quoted(column_name)))
        )
    for owner, table, name, of, referenced, *columns in query("references"):
        pairs = [pair for pair in zip(columns[::2], columns[1::2], strict=True) if pair[0] is not None]
        parts.references[str(owner), str(table)].append(
            Reference(
                str(name),
                tuple(str(here) for here, _ in pairs),
                str(referenced),
                tuple(str(there) for _, there in pairs),
                owner=str(of),
            )
        )
    return parts


def _condition(text: str) -> str:
    """The condition of `constraint c check (condition)`."""
    found = re.fullmatch(r"(?is)\s*(?:constraint\s+\S+\s+)?check\s*\((.*)\)\s*", text)
    return found[1].strip() if found else text


def indexes(
    cursor: Any, unread: list[str], left: list[str]
) -> tuple[Mapping[TableName, Any], Mapping[TableName, Any], Mapping[TableName, Any]]:
    """Keys, the primary ones among them, and other indexes. index_col gives their columns one by one."""
    keys: dict[TableName, list[tuple[str, ...]]] = defaultdict(list)
    primary: dict[TableName, list[OldKey]] = defaultdict(list)
    others: dict[TableName, list[OldIndex]] = defaultdict(list)
    text = (
        "select user_name(o.uid), o.name, i.name, i.indid, i.status from sysobjects o, sysindexes i"
        " where o.type = 'U' and i.id = o.id and i.indid > 0 and i.indid < 255"
    )
    try:
        cursor.execute(text)
        rows = sorted(cursor.fetchall(), key=lambda row: (not int(row[4]) & _PRIMARY, row[3]))
        for owner, table, name, index, status in rows:
            columns = tuple(_columns_of(cursor, str(owner), str(table), int(index)))
            full_name, unique = (str(owner), str(table)), bool(int(status) & (_UNIQUE | _PRIMARY))
            if not columns:
                left.append(
                    f"index {name} of {table} is not migrated: the server does not report its columns"
                )
                continue
            if int(status) & _IGNORES:
                left.append(f"index {name} of {table} ignores repeated rows there: here they are errors")
            if unique:
                keys[full_name].append(columns)
            if int(status) & _PRIMARY:
                primary[full_name].append(OldKey(str(name), columns, True))
            else:
                others[full_name].append(OldIndex(str(name), tuple(map(quoted, columns)), unique))
    except pymssql.Error as error:
        unread.append(f"indexes: {error.args[-1]!r}")
    return keys, primary, others


def add_last_identities(cursor: Any, parts: Parts) -> None:
    """Adds the last value of each identity, by next_identity (ASE 12.5.0.3 and later)."""
    for (owner, table), columns in parts.columns.items():
        for index, column in enumerate(columns):
            if column.identity is None:
                continue
            try:
                cursor.execute(f"select convert(varchar(40), next_identity({_named(owner, table)}))")
                ((following,),) = cursor.fetchall()
            except pymssql.Error as error:
                if number(error) not in _NO_FUNCTION:
                    raise
                parts.left.append(
                    "the server does not report the next values of identities: here they continue after "
                    "the greatest stored value"
                )
                return
            if following is not None:
                columns[index] = replace(column, last=int(following) - column.identity[1])


def _named(owner: str, table: str) -> str:
    named = (table if owner == "dbo" else f"{owner}.{table}").replace("'", "''")
    return f"'{named}'"


def _columns_of(cursor: Any, owner: str, table: str, index: int) -> Iterator[str]:
    named = _named(owner, table)
    columns = ", ".join(f"index_col({named}, {index}, {position})" for position in range(1, 32))
    cursor.execute(f"select {columns}")
    yield from (str(name) for name in cursor.fetchall()[0] if name is not None)


def grants(
    rows: Rows, tables: Mapping[TableName, OldTable], names: Mapping[str, Mapping[str, str]]
) -> list[Grant]:
    """Rights of sysprotects. Bit 0 of the columns is all of them, bit n the column of id n.

    `tables`: by owner and name there; `names`: the names here, by owner and name.
    """
    granted = []
    for who, action, state, _, what, columns, owner in rows:
        right = _ACTIONS.get(int(action), f"action {action}")
        here = "" if what is None else names.get(str(owner).lower(), {}).get(str(what).lower())
        if here is None:
            continue
        table = tables.get((str(owner), str(what)))
        bits = int.from_bytes(bytes(columns or b""), "little")
        named: tuple[str, ...] = ()
        if table is not None and bits and not bits & 1:
            named = tuple(column.name for number, column in enumerate(table.columns, 1) if bits >> number & 1)
        granted.append(Grant(str(who), right, here, named, _STATES[int(state)]))
    return granted
