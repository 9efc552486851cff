"""Names of other databases in the texts of procedures, views, triggers and functions.

Here a database is a schema, and `database..name` has the same meaning. Parts that are not migrated are
reported.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ringlog.adoption.conversion.owners import PART, SKIPPED, plain
from ringlog.adoption.databases import is_system
from ringlog.adoption.server.left import listed
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Module, Old

_NAME = re.compile(
    rf"(?is){SKIPPED}"
    rf"|(?<![\w$#@.\]\"])(?P<database>{PART})\s*\.\s*(?P<owner>{PART})?\s*\.\s*(?P<name>{PART})"
    rf"|\"(?:[^\"]|\"\")*\"|{PART}"
)
_OF_SYSTEM = frozenset({"sys", "information_schema"})


def across(databases: Sequence[Old], known: Collection[str], own: Mapping[str, Collection[str]]) -> list[Old]:
    """The databases; in their texts names of other databases' objects are replaced by the names here.

    `known`: the names of all databases of the old server, in small letters. `own`: by database, the
    procedures that ringlog's own replace; those belong to no database.
    """
    return [_resolved(old, databases, known, own) for old in databases]


def _resolved(
    old: Old, databases: Sequence[Old], known: Collection[str], own: Mapping[str, Collection[str]]
) -> Old:
    names = {each.database: each.names for each in databases}
    replaced = {database: {name.lower() for name in those} for database, those in own.items()}
    absent: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))

    def written(found: re.Match[str], module: Module) -> str:
        if found["database"] is None:
            return found[0]
        database, owner, name = (plain(found[part] or "") for part in ("database", "owner", "name"))
        if name in replaced.get(database, ()):
            return quoted(name)
        if database == old.database or not _is_other(database, owner, name, known, old):
            return found[0]
        here = _here(names[database], owner, name) if database in names else None
        if here is None:
            what = f"{database}.{owner}.{name}" if database in names else f"the database {database}"
            absent[what][f"{module.kind} {module.name}"].append(module.text.count("\n", 0, found.start()) + 1)
            return found[0]
        if owner in ("", "dbo") and here.lower() == name:
            return found[0]
        return f"{found['database']}..{quoted(here)}"

    modules = tuple(
        replace(module, text=_NAME.sub(partial(written, module=module), module.text))
        for module in old.modules
    )
    return replace(old, modules=modules, left=(*old.left, *_lines(absent)))


def _is_other(database: str, owner: str, name: str, known: Collection[str], old: Old) -> bool:
    """Whether `database.owner.name` is a name of another database, and not a column of a table."""
    if is_system(database, known) or database.startswith("@") or database[:1].isdigit():
        return False
    if owner in _OF_SYSTEM or name.startswith("sys"):
        return False
    # `x..name` cannot be anything else
    return not owner or (database in known and database not in old.names)


def _here(names: Mapping[str, Mapping[str, str]], owner: str, name: str) -> str | None:
    """The name of an object in ringlog; without an owner it is dbo's object, or that of its only owner."""
    if owner:
        return names.get(owner, {}).get(name)
    if name in names.get("dbo", {}):
        return names["dbo"][name]
    found = [those[name] for those in names.values() if name in those]
    return found[0] if len(found) == 1 else None


def _lines(absent: Mapping[str, Mapping[str, Sequence[int]]]) -> Iterator[str]:
    for what, modules in absent.items():
        named = [
            f"{module} (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})"
            for module, lines in modules.items()
        ]
        yield f"{what} is not migrated, but used by {listed(named)}"
