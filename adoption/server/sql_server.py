"""Tables and rights from SQL Server's catalogue views (System Catalog Views)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Check, Grant, OldColumn, OldIndex, OldKey, Reference
from ringlog.adoption.server.parts import Parts, Query, Rows, TableName, condition_of_rule, default_of

_OBJECT, _SCHEMA = 1, 3  # database_permissions.class
# rights that every object may have, and that are granted with a schema or the database too
_OF_TABLES = ("SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES")
_STATES = {"GRANT": "granted", "GRANT_WITH_GRANT_OPTION": "grantable", "DENY": "denied"}
_PLAIN = {"text", "char", "varchar"}


def table_parts(query: Query) -> Parts:
    """Columns with their defaults, checks with rules, foreign keys."""
    parts = Parts()
    identities = {
        (str(owner), str(table)): ((int(seed), int(step)), None if last is None else int(last))
        for owner, table, seed, step, last in query("identities")
    }
    for owner, table, name, kind, length, precision, scale, *more in query("columns"):
        nullable, default, computed, identity, collation = more
        full_name = str(owner), str(table)
        first, last = identities.get(full_name, ((1, 1), None))
        parts.columns[full_name].append(
            OldColumn(
                str(name),
                str(kind),
                int(length or 0),
                int(precision or 0),
                int(scale or 0),
                bool(nullable),
                default_of(str(default or "")),
                str(computed or ""),
                first if identity else None,
                last if identity else None,
                str(collation or "") if str(kind) in _PLAIN else "",
                str(collation or ""),
            )
        )
    for owner, table, name, condition, disabled in query("checks"):
        if disabled:
            parts.left.append(f"check {name} of {table} is disabled there, and not migrated: {condition}")
        else:
            parts.checks[str(owner), str(table)].append(Check(str(name), str(condition)))
    for owner, table, column, name, text in query("rules"):
        condition = condition_of_rule(str(text), quoted(str(column)))
        parts.checks[str(owner), str(table)].append(Check(f"{name}_{column}", condition))
    references: dict[tuple[TableName, str], list[tuple[Any, ...]]] = defaultdict(list)
    for owner, table, name, *rest in query("references"):
        references[(str(owner), str(table)), str(name)].append(tuple(rest))
    for (full_name, name), rows in references.items():
        _, table, _, deleting, updating, owner, disabled = rows[0]
        if disabled:
            parts.left.append(f"foreign key {name} of {full_name[1]} is disabled there, and not migrated")
            continue
        parts.references[full_name].append(
            Reference(
                name,
                tuple(str(row[0]) for row in rows),
                str(table),
                tuple(str(row[2]) for row in rows),
                _action(deleting),
                _action(updating),
                str(owner),
            )
        )
    return parts


def _action(given: Any) -> str:
    return "" if str(given) == "NO_ACTION" else str(given).replace("_", " ")


def indexes(rows: Rows) -> tuple[Mapping[TableName, Any], Mapping[TableName, Any], Mapping[TableName, Any]]:
    """Keys, the primary one first, those of them that are constraints, and other indexes.

    An index of some rows only is no key. One that is unique is both a key and an index: repeated rows are
    another error there (2601) than of a constraint (2627).
    """
    by_index: dict[tuple[TableName, str], list[tuple[Any, ...]]] = defaultdict(list)
    for owner, table, name, *rest in rows:
        by_index[(str(owner), str(table)), str(name)].append(tuple(rest))
    keys: dict[TableName, list[tuple[str, ...]]] = defaultdict(list)
    constraints: dict[TableName, list[OldKey]] = defaultdict(list)
    others: dict[TableName, list[OldIndex]] = defaultdict(list)
    for (full_name, name), columns in sorted(by_index.items(), key=lambda each: not each[1][0][1]):
        _, primary, unique, _, condition, of_constraint, by_server = columns[0]
        named = tuple(str(column[0]) for column in columns)
        if unique and condition is None:
            keys[full_name].append(named)
        if primary or of_constraint:
            constraints[full_name].append(OldKey("" if by_server else name, named, bool(primary)))
        else:
            directed = tuple(quoted(str(column[0])) + (" desc" if column[3] else "") for column in columns)
            others[full_name].append(OldIndex(name, directed, bool(unique), str(condition or "")))
    return keys, constraints, others


def grants(
    rows: Rows, objects: Sequence[tuple[str, str, bool]], names: Mapping[str, Mapping[str, str]]
) -> list[Grant]:
    """Rights on objects; those on a schema or the database are rights on each of its objects.

    `objects`: schema, name here, and whether it is called; `names`: the names here, by schema and name.
    """
    columns: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    found = []
    for who, right, state, kind, what, column, schema, owner in rows:
        granted = _STATES.get(str(state), "")
        if not granted:
            continue
        if int(kind) == _OBJECT:
            here = names.get(str(owner).lower(), {}).get(str(what).lower())
            if here is None:
                continue
            if column is not None:
                columns[str(who), str(right), here, granted].append(str(column))
            else:
                found.append(Grant(str(who), str(right), here, (), granted))
        elif str(right) in (*_OF_TABLES, "EXECUTE"):
            found += [
                Grant(str(who), str(right), name, (), granted)
                for of, name, is_called in objects
                if is_called == (str(right) == "EXECUTE") and (int(kind) != _SCHEMA or of == schema)
            ]
        elif str(right) != "CONNECT":
            found.append(Grant(str(who), str(right), "", (), granted))
    found += [
        Grant(who, right, what, tuple(named), state) for (who, right, what, state), named in columns.items()
    ]
    return found
