"""The tables of a site as T-SQL for ringlog, and the parts that are refused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ringlog.adoption.names import quoted
from ringlog.adoption.objects import OldColumn, OldTable
from ringlog.gateway import TsqlError, translate


@dataclass
class Made:
    """A table's T-SQL, or why there is none."""

    table: OldTable
    text: str = ""
    after: list[str] = field(default_factory=list)
    """what is made when all tables are there: indexes and foreign keys"""
    refused: str = ""
    lost: list[str] = field(default_factory=list)
    """what it demands there and not here, with why"""


def made(table: OldTable, there: Sequence[str], sybase: bool) -> Made:
    """The T-SQL of a table beside others; parts that the front end refuses are left out, and reported."""
    result = Made(table)
    bare = [_column(column) for column in table.columns]
    for column, line in zip(table.columns, bare, strict=True):
        if why := _refusal(f"create table t ({line})", sybase):
            result.refused = f"column {column.name} is {column.declared}: {why}"
            return result
    lines = [
        _with_rest(column, line, sybase, result) for column, line in zip(table.columns, bare, strict=True)
    ]
    lines += [
        f"{'primary key' if place == 0 else 'unique'} ({_listed(key)})"
        for place, key in enumerate(table.keys)
    ]
    for check in table.checks:
        line = f"constraint {quoted(check.name)} check ({check.condition})"
        if why := _refusal(f"create table t ({', '.join([*bare, line])})", sybase):
            result.lost.append(f"table {table.name}: check {check.name} ({check.condition}): {why}")
        else:
            lines.append(line)
    result.text = f"create table {quoted(table.name)} (\n    " + ",\n    ".join(lines) + "\n)"
    if why := _refusal(result.text, sybase):
        result.refused = why
        return result
    result.after = [*_indexes(table, sybase, result), *_references(table, there, sybase, result)]
    return result


def _column(column: OldColumn) -> str:
    identity = ""
    if column.identity is not None:
        identity = " identity" if column.identity == (1, 1) else f" identity{column.identity}"
    null = "null" if column.nullable else "not null"
    return f"{quoted(column.name)} {column.declared}{identity} {null}"


def _with_rest(column: OldColumn, line: str, sybase: bool, result: Made) -> str:
    where = f"table {result.table.name}, column {column.name}"
    if column.computed:
        name = quoted(column.name)
        others = [_column(other) for other in result.table.columns if not other.computed]
        computed = f"{name} as {column.computed}"
        why = _refusal(f"create table t ({', '.join([*others, computed])})", sybase)
        if not why:
            return computed
        result.lost.append(
            f"{where} is computed there ({column.computed}): {why}; here it has its values of now"
        )
    elif column.default:
        why = _refusal(f"create table t ({line} default {column.default})", sybase)
        if not why:
            return f"{line} default {column.default}"
        result.lost.append(f"{where}: default {column.default}: {why}")
    return line


def _indexes(table: OldTable, sybase: bool, result: Made) -> Iterator[str]:
    for place, index in enumerate(table.indexes, 1):
        unique = "unique " if index.unique else ""
        columns = ", ".join(index.columns)
        rest = f" on {quoted(table.name)} ({columns})"
        rest += f" where {index.condition}" if index.condition else ""
        text = f"create {unique}index {quoted(index.name)}{rest}"
        if _refusal(text, sybase) and not _refusal(f"create index i_{place}{rest}", sybase):
            # longer than a name may be here; no statement names an index
            text = f"create {unique}index i_{place}{rest}"
        if why := _refusal(text, sybase):
            result.lost.append(f"table {table.name}: index {index.name}: {why}")
        else:
            yield text


def _references(table: OldTable, there: Sequence[str], sybase: bool, result: Made) -> Iterator[str]:
    for reference in table.references:
        text = (
            f"alter table {quoted(table.name)} add constraint {quoted(reference.name)} foreign key"
            f" ({_listed(reference.columns)}) references {quoted(reference.table)}"
            f" ({_listed(reference.referenced)})"
        )
        text += f" on delete {reference.on_delete.lower()}" if reference.on_delete else ""
        text += f" on update {reference.on_update.lower()}" if reference.on_update else ""
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
    """Why the front end does not take a text; empty when it does."""
    try:
        translate(text, database="dbo", sybase=sybase)
    except TsqlError as error:
        return str(error.args[2])
    return ""
