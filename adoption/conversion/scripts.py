"""Writes the files of a migration: a facility file, the T-SQL of the site's own objects, its logins."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from psycopg import sql

from ringlog.adoption.conversion.order import ordered
from ringlog.adoption.conversion.rights import Rights
from ringlog.adoption.conversion.tables import TableScript
from ringlog.adoption.rings import Ring, Sorted, facility_type
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Module, Old

_Statement: TypeAlias = tuple[str, str]
"""the database it is for, and its T-SQL"""

# views may name functions, and functions views
_ORDER = (
    ("functions_and_views", ("function", "view")),
    ("procedures", ("procedure",)),
    ("triggers", ("trigger",)),
)


@dataclass(frozen=True)
class Database:
    """A database of the old server, and its equivalent here."""

    name: str
    """the schema here"""
    old: Old
    found: Sorted
    tables: Sequence[TableScript]
    rights: Rights

    @property
    def accepted(self) -> list[TableScript]:
        return [table for table in self.tables if not table.refused]


def write(folder: Path, databases: Sequence[Database], timezone: str) -> list[str]:
    """Writes the files into the folder. Returns their names and descriptions.

    T-SQL of several databases has a USE before the part of each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    rings = [ring for each in databases for ring in each.found.rings]
    if rings:
        (folder / "facility.toml").write_text("\n".join(facility(rings, timezone)) + "\n")
        written.append(f"facility.toml: {len(rings)} tables")
    scripts: dict[str, list[_Statement]] = {
        "1_tables.sql": [
            *((each.name, table.text) for each in databases for table in each.accepted),
            *((each.name, text) for each in databases for table in each.accepted for text in table.indexes),
            *(
                (each.name, text)
                for each in databases
                for table in each.accepted
                for text in table.references
            ),
        ]
    }
    for number, (name, kinds) in enumerate(_ORDER, 2):
        modules = [
            module
            for each in databases
            for module in each.old.modules
            if module.kind in kinds and module.text.strip() and not module.refused
        ]
        scripts[f"{number}_{name}.sql"] = [
            *(_views_of_rings(rings) if "view" in kinds else ()),
            *((module.database, _text(module)) for module in ordered(modules)),
        ]
    scripts["5_grants.sql"] = [(each.name, text) for each in databases for text in each.rights.tsql]
    for file, statements in scripts.items():
        if statements:
            texts = _with_use(statements) if len(databases) > 1 else [text for _, text in statements]
            (folder / file).write_text("".join(f"{text}\ngo\n" for text in texts))
            written.append(f"{file}: {len(statements)}")
    for file, lines in (
        ("0_roles.psql", [line for each in databases for line in each.rights.roles]),
        ("6_rights.psql", [line for each in databases for line in each.rights.sql]),
        (
            "7_descriptions.psql",
            [line for each in databases for line in _descriptions(each.accepted, each.name)],
        ),
    ):
        if lines:
            (folder / file).write_text("\n".join([*dict.fromkeys(lines), ""]))
            written.append(f"{file}: {len(dict.fromkeys(lines))}")
    if names := sorted({login for each in databases for login in each.old.logins}):
        writers = {login for each in databases for login in each.rights.writers}
        logins = [
            f'ringlog user add {_shell(login)} --reader{" --writer" if login in writers else ""} "$@"'
            for login in names
        ]
        written.append(f"logins.sh: {len(logins)}")
        head = (
            "# each prompts for a password; --writer: calls procedures or changes rows there. "
            "Give it --data or --dsn"
        )
        (folder / "logins.sh").write_text("\n".join([head, *logins, ""]))
    return written


def _with_use(statements: Sequence[_Statement]) -> Iterator[str]:
    current = ""
    for database, text in statements:
        if database != current:
            yield f"use {quoted(database)}"
        current = database
        yield text


def _views_of_rings(rings: Sequence[Ring]) -> Iterator[_Statement]:
    """Views of rings and logs in the databases where these are at the old server, with the names there."""
    for ring in rings:
        name = ring.table.name.lower()
        views = [(ring.log, "log")] if ring.log is not None else []
        views.append((ring.table, "online"))
        for table, schema in views:
            columns = ", ".join(_in_ring(ring, column.name) for column in ring.table.columns)
            view = f"create view {quoted(table.name)} as select {columns} from {schema}..{quoted(name)}"
            database = table.database.lower()
            yield database, view
            yield database, f"grant select on {quoted(table.name)} to daq_reader"


def _in_ring(ring: Ring, column: str) -> str:
    for there, here in ((ring.seq_no, "seq_no"), (ring.time, "time")):
        if column == there:
            return f"{quoted(column)} = {quoted(here)}" if column.lower() != here else quoted(column)
    return quoted(column)


def _text(module: Module) -> str:
    """Its T-SQL, read as it was when it was made."""
    if module.quoted is False:
        return f"set quoted_identifier off\ngo\n{module.text.strip()}\ngo\nset quoted_identifier on"
    return module.text.strip()


def _descriptions(tables: Sequence[TableScript], database: str) -> Iterator[str]:
    for script in tables:
        if script.table.description:
            name = sql.Identifier(database, script.table.name.lower()).as_string(None)
            yield f"comment on table {name} is {sql.Literal(script.table.description).as_string(None)};"


def _shell(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def facility(rings: Sequence[Ring], timezone: str) -> Iterator[str]:
    yield f"timezone = {json.dumps(timezone)}"
    for ring in rings:
        yield "\n[[table]]"
        yield f"name = {json.dumps(ring.table.name.lower())}"
        if ring.table.description:
            yield f"description = {json.dumps(ring.table.description, ensure_ascii=False)}"
        yield f"rows = {ring.table.rows}"
        yield f"cycle = {ring.cycle}"
        yield 'log = "every"'
        for column in ring.table.columns:
            if column.name in (ring.seq_no, ring.time):
                continue
            yield "\n[[table.column]]"
            yield f"name = {json.dumps(column.name.lower())}"
            yield f"type = {json.dumps(facility_type(column.type, column.length))}"
            if column.description:
                yield f"description = {json.dumps(column.description, ensure_ascii=False)}"
