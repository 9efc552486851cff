"""The tables of a site as T-SQL for ringlog, and the parts that are refused."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ringlog.adoption.rows.composites import DATETIMEOFFSET
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import OldColumn, OldKey, OldTable
from ringlog.gateway import TsqlError, translate

_FINEST = 7
"""Decimal places of a datetimeoffset: columns have no other of these here."""
ROW_VERSIONS = ("timestamp", "rowversion")
"""Types of columns that the server writes at each change of a row."""


@dataclass
class TableScript:
    """A table's T-SQL, or the reason of its refusal."""

    table: OldTable
    text: str = ""
    indexes: list[str] = field(default_factory=list)
    """made when all tables are there"""
    references: list[str] = field(default_factory=list)
    """made when all indexes are there, which foreign keys may need"""
    refused: str = ""
    lost: list[str] = field(default_factory=list)
    """its parts that are left out here, with the reason"""


def table_scripts(tables: Sequence[OldTable], sybase: bool) -> list[TableScript]:
    """The T-SQL of the tables of a site."""
    there = [table.name for table in tables]
    taken = {name.lower() for name in there}
    return [table_script(table, there, sybase, taken) for table in tables]


def table_script(table: OldTable, there: Sequence[str], sybase: bool, taken: set[str]) -> TableScript:
    """The T-SQL of a table; parts that the front end refuses are left out, and reported.

    `taken` are names that a key cannot have, as tables here have them; in small letters.
    """
    result = TableScript(table)
    for column in table.columns:
        if column.type in ROW_VERSIONS:
            result.lost.append(
                f"table {table.name}, column {column.name}: {column.type}: versions are not copied; "
                "add the column when the rows are there"
            )
        elif column.type == DATETIMEOFFSET and column.scale != _FINEST:
            result.lost.append(
                f"table {table.name}, column {column.name}: {column.declared} is datetimeoffset({_FINEST}) "
                "here: later values are not rounded"
            )
    columns = [
        replace(column, scale=_FINEST) if column.type == DATETIMEOFFSET else column
        for column in table.columns
        if column.type not in ROW_VERSIONS
    ]
    bare = [_column(column) for column in columns]
    for column, line in zip(columns, bare, strict=True):
        if why := _refusal(f"create table t ({line})", sybase):
            result.refused = f"column {column.name} is {column.declared}: {why}"
            return result
    others = [line for column, line in zip(columns, bare, strict=True) if not column.computed]
    lines = [
        _with_rest(column, line, others, sybase, result) for column, line in zip(columns, bare, strict=True)
    ]
    lines += [_key(key, sybase, taken) for key in table.constraints]
    for check in table.checks:
        condition = f"check ({check.condition})"
        line = f"constraint {quoted(check.name)} {condition}"
        if _refusal(f"create table t ({', '.join([*bare, line])})", sybase):
            # longer than a name may be here
            line = condition
        if why := _refusal(f"create table t ({', '.join([*bare, line])})", sybase):
            result.lost.append(f"table {table.name}: check {check.name} ({check.condition}): {why}")
        else:
            lines.append(line)
    result.text = f"create table {quoted(table.name)} (\n    " + ",\n    ".join(lines) + "\n)"
    if why := _refusal(result.text, sybase):
        result.refused = why
        return result
    result.indexes = [*_indexes(table, sybase, result)]
    result.references = [*_references(table, there, sybase, result)]
    return result


def _key(key: OldKey, sybase: bool, taken: set[str]) -> str:
    line = f"{'primary key' if key.primary else 'unique'} ({_listed(key.columns)})"
    named = f"constraint {quoted(key.name)} {line}"
    columns = ", ".join(f"{quoted(name)} int not null" for name in key.columns)
    if not key.name or key.name.lower() in taken or _refusal(f"create table t ({columns}, {named})", sybase):
        return line
    taken.add(key.name.lower())
    return named


def _column(column: OldColumn) -> str:
    identity = ""
    if column.identity is not None:
        identity = " identity" if column.identity == (1, 1) else f" identity{column.identity}"
    null = "null" if column.nullable else "not null"
    collation = f" collate {column.collation}" if column.collation else ""
    return f"{quoted(column.name)} {column.declared}{collation}{identity} {null}"


def _with_rest(column: OldColumn, line: str, others: Sequence[str], sybase: bool, result: TableScript) -> str:
    where = f"table {result.table.name}, column {column.name}"
    if column.computed:
        name = quoted(column.name)
        computed = f"{name} as {column.computed}"
        why = _refusal(f"create table t ({', '.join([*others, computed])})", sybase)
        if not why:
            return computed
        result.lost.append(
            f"{where} is computed there ({column.computed}): {why}; here it is an ordinary "
            "column with the values of the copy"
        )
    elif column.default:
        why = _refusal(f"create table t ({line} default {column.default})", sybase)
        if not why:
            return f"{line} default {column.default}"
        result.lost.append(f"{where}: default {column.default}: {why}")
    return line


def _indexes(table: OldTable, sybase: bool, result: TableScript) -> Iterator[str]:
    for number, index in enumerate(table.indexes, 1):
        unique = "unique " if index.unique else ""
        columns = ", ".join(index.columns)
        rest = f" on {quoted(table.name)} ({columns})"
        rest += f" where {index.condition}" if index.condition else ""
        text = f"create {unique}index {quoted(index.name)}{rest}"
        if _refusal(text, sybase) and not _refusal(f"create index i_{number}{rest}", sybase):
            # longer than a name may be here; no statement names an index
            text = f"create {unique}index i_{number}{rest}"
        if why := _refusal(text, sybase):
            result.lost.append(f"table {table.name}: index {index.name}: {why}")
        else:
            yield text


def _references(table: OldTable, there: Sequence[str], sybase: bool, result: TableScript) -> Iterator[str]:
    for reference in table.references:
        key = (
            f"foreign key ({_listed(reference.columns)}) references {quoted(reference.table)}"
            f" ({_listed(reference.referenced)})"
        )
        key += f" on delete {reference.on_delete.lower()}" if reference.on_delete else ""
        key += f" on update {reference.on_update.lower()}" if reference.on_update else ""
        text = f"alter table {quoted(table.name)} add constraint {quoted(reference.name)} {key}"
        if _refusal(text, sybase):
            # longer than a name may be here
            text = f"alter table {quoted(table.name)} add {key}"
        why = (
            _refusal(text, sybase)
            if reference.table in there
            else f"{reference.table} is no table of the site"
        )
        if why:
            result.lost.append(f"table {table.name}: foreign key {reference.name}: {why}")
        else:
            yield text


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _refusal(text: str, sybase: bool) -> str:
    """The front end's reason to refuse a text; empty when it accepts the text."""
    if re.search(r"(?i)\btsql\s*\.", text):
        return "ringlog as the old server reports it in PostgreSQL's words"
    if re.search(r"(?i)\bnext\s+value\s+for\b", text):
        return "sequences are not migrated"
    try:
        translate(text, database="dbo", sybase=sybase)
    except TsqlError as error:
        return str(error.args[2])
    return ""
