"""The objects and properties of an old database that are not migrated, a line for each."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringlog.adoption.server.collations import here
from ringlog.adoption.server.objects import OldColumn
from ringlog.adoption.server.parts import Query, TableName

_DATABASE = 0  # sys.triggers.parent_class
_HISTORY = 1  # sys.tables.temporal_type
_NAMED = 8  # number of names in a line
_DESCRIPTION = "MS_Description"


def of_sql_server(query: Query) -> Iterator[str]:
    """Objects, triggers, indexes, tables and types, as SQL Server's catalogue views have them."""
    objects: dict[str, list[str]] = defaultdict(list)
    for kind, owner, name in query("left_objects"):
        objects[str(kind).lower().replace("_", " ")].append(f"{owner}.{name}")
    for kind, names in objects.items():
        yield f"not migrated, of kind {kind}: {listed(names)}"
    for name, parent, disabled, kind in query("left_triggers"):
        if int(parent) == _DATABASE:
            yield f"database trigger {name} is not migrated: ringlog has none"
        elif str(kind) == "TA":
            yield f"trigger {name} is not migrated: it belongs to an assembly"
        elif disabled:
            yield f"trigger {name} is disabled there: disable it here too, or drop it"
    for table, name, kind, disabled, ignores, of in query("left_indexes"):
        where = f"index {name} of {table}"
        if str(of).strip() == "V":
            yield f"{where}, a view, is not migrated: views have no indexes here"
        elif disabled:
            yield f"{where} is disabled there, and not migrated"
        elif ignores:
            yield f"{where} ignores repeated rows there (ignore_dup_key): here they are errors"
        else:
            yield f"{where} is not migrated: it is {str(kind).lower()}"
    for name, kind in query("left_tables"):
        if int(kind) != _HISTORY:
            yield f"table {name} keeps its history there (temporal): here it has the current rows only"
    if masked := [f"{table}.{column}" for table, column in query("left_columns")]:
        yield f"columns with masked values: {listed(masked)}: copy by a login that may see them (unmask)"
    if policies := [str(name) for (name,) in query("left_policies")]:
        yield f"policies show a login some rows only: {listed(policies)}: copy by a login that sees all"
    if types := [str(name) for (name,) in query("left_types")]:
        yield f"not migrated, types that are tables: {listed(types)}"


def of_ase(query: Query) -> Iterator[str]:
    """Foreign keys and objects, as ASE's tables of a database have them."""
    for table, name in query("left_references"):
        yield f"foreign key {name} of {table} is not migrated: it has more than 8 columns or another database"
    if names := [f"{owner}.{name}" for owner, name in query("left_objects")]:
        yield f"not migrated, extended stored procedures: {listed(names)}"
    for (name,) in query("sort_order"):
        if "noaccents" in str(name):
            yield f"texts are compared by the sort order {name} there: here they are compared exactly"


def of_collations(columns: Mapping[TableName, Sequence[OldColumn]]) -> Iterator[str]:
    """Texts that are the same there and not here."""
    found: dict[str, list[str]] = defaultdict(list)
    for (_, table), those in columns.items():
        for column in those:
            if column.collation and not here(column.collation):
                found[column.collation].append(f"{table}.{column.name}")
    for collation, names in sorted(found.items()):
        yield (
            f"texts of {len(names)} columns are compared by {collation} there ({listed(names)}): "
            "here they are compared exactly, with their case and accents"
        )


def descriptions(
    query: Query, left: list[str]
) -> tuple[dict[TableName, str], dict[tuple[str, str, str], str]]:
    """The descriptions of tables and of their columns. Other properties are reported in `left`."""
    tables: dict[TableName, str] = {}
    columns: dict[tuple[str, str, str], str] = {}
    others: dict[str, list[str]] = defaultdict(list)
    for owner, table, column, name, value in query("descriptions"):
        if str(name) != _DESCRIPTION:
            others[str(name)].append(f"{table}.{column}" if column is not None else str(table))
        elif column is None:
            tables[str(owner), str(table)] = str(value or "")
        else:
            columns[str(owner), str(table), str(column)] = str(value or "")
    left += [f"not migrated, the property {name} of {listed(objects)}" for name, objects in others.items()]
    return tables, columns


def listed(names: Sequence[Any]) -> str:
    """Some of the names, and how many there are in all."""
    some = ", ".join(map(str, names[:_NAMED]))
    return some if len(names) <= _NAMED else f"{some}, … ({len(names)} in all)"
