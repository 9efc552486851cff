"""Writes the files of a migration: a facility file, the T-SQL of the site's own objects, its logins."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from psycopg import sql

from ringlog.adoption.names import quoted
from ringlog.adoption.objects import Module, Old
from ringlog.adoption.order import ordered
from ringlog.adoption.rights import Rights
from ringlog.adoption.rings import Ring, Sorted, facility_type
from ringlog.adoption.tables import Made

# views may name functions, and functions views
_ORDER = (
    ("functions_and_views", ("function", "view")),
    ("procedures", ("procedure",)),
    ("triggers", ("trigger",)),
)


def write(
    folder: Path,
    old: Old,
    found: Sorted,
    tables: Sequence[Made],
    rights: Rights,
    timezone: str,
    database: str,
) -> list[str]:
    """Writes the files into the folder; their names, with what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    if found.rings:
        (folder / "facility.toml").write_text("\n".join(facility(found.rings, timezone)) + "\n")
        written.append(f"facility.toml: {len(found.rings)} tables")
    made = [table for table in tables if not table.refused]
    scripts: dict[str, list[str]] = {
        "1_tables.sql": [
            *(table.text for table in made),
            *(text for table in made for text in table.indexes),
            *(text for table in made for text in table.references),
        ]
    }
    for place, (name, kinds) in enumerate(_ORDER, 2):
        modules = [
            module
            for module in old.modules
            if module.kind in kinds and module.text.strip() and not module.refused
        ]
        scripts[f"{place}_{name}.sql"] = [
            *(_views_of_rings(found.rings) if "view" in kinds else ()),
            *(_text(module) for module in ordered(modules)),
        ]
    scripts["5_grants.sql"] = list(rights.tsql)
    for file, texts in scripts.items():
        if texts:
            (folder / file).write_text("".join(f"{text}\ngo\n" for text in texts))
            written.append(f"{file}: {len(texts)}")
    described = [*_descriptions(made, database)]
    for file, lines in (
        ("0_roles.psql", rights.roles),
        ("6_rights.psql", rights.sql),
        ("7_descriptions.psql", described),
    ):
        if lines:
            (folder / file).write_text("\n".join([*lines, ""]))
            written.append(f"{file}: {len(lines)}")
    if old.logins:
        logins = [
            f'ringlog user add {_shell(login)} --reader{" --writer" if login in rights.writers else ""} "$@"'
            for login in old.logins
        ]
        written.append(f"logins.sh: {len(logins)}")
        head = (
            "# each asks for a password; --writer: who calls procedures or changes rows there. "
            "Give it --data or --dsn"
        )
        (folder / "logins.sh").write_text("\n".join([head, *logins, ""]))
    return written


def _views_of_rings(rings: Sequence[Ring]) -> Iterator[str]:
    """Views of the names that logs, and columns of rings, have at the old server."""
    for ring in rings:
        name = ring.table.name.lower()
        views = [(ring.log, "log")] if ring.log is not None else []
        if (ring.seq_no.lower(), ring.time.lower()) != ("seq_no", "time"):
            views.append((ring.table, "online"))
        for table, database in views:
            columns = ", ".join(_in_ring(ring, column.name) for column in ring.table.columns)
            yield f"create view {quoted(table.name)} as select {columns} from {database}..{quoted(name)}"
            yield f"grant select on {quoted(table.name)} to daq_reader"


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


def _descriptions(tables: Sequence[Made], database: str) -> Iterator[str]:
    for made in tables:
        if made.table.description:
            place = sql.Identifier(database, made.table.name.lower()).as_string(None)
            yield f"comment on table {place} is {sql.Literal(made.table.description).as_string(None)};"


def _shell(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def facility(rings: Sequence[Ring], timezone: str) -> Iterator[str]:
    """The lines of the facility file."""
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
