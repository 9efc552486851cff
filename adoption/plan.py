"""The progress of a migration, from the files of `ringlog adopt` and from the database."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from ringlog.adoption.choices import choices
from ringlog.adoption.rows.copying import Ledger, identity
from ringlog.schema import session
from ringlog.schema.sql_files import sql_file

_THERE = sql_file(__file__, "plan_there")
_HISTORY = """
select table_name, min(reached), bool_or(reached >= until) from ringlog.migration
where source like 'tds%%' group by 1
"""


@dataclass(frozen=True)
class Step:
    """A step of a migration: whether it is done (None: unknown to the database), its progress, and the
    command that continues it."""

    name: str
    done: bool | None
    state: str
    command: str


def steps(folder: Path, conninfo: str) -> Iterator[Step]:
    """The steps in their order. `folder` is that of `ringlog adopt --output`."""
    file = folder / "assessment.json"
    adopt = f"ringlog adopt tds://USER@HOST/DATABASE --output {folder}"
    if not file.exists():
        yield Step("assess", False, f"there is no {file}", adopt)
        return
    whole = json.loads(file.read_text())
    databases: list[dict[str, Any]] = whole.get("databases", [whole])
    modules = [module for each in databases for module in each["modules"]]
    compiled = sum(module["compiled"] for module in modules)
    yield Step("assess", True, f"{compiled} of {len(modules)} objects compile", adopt)
    with session.connect(conninfo) as connection:
        yield from _objects(connection, folder, databases)
        rings = [ring for each in databases for ring in each["rings"]]
        yield _history(connection, rings, choices(folder).words())
    ledger = Ledger(folder / "copied.json", identity(conninfo))
    yield Step(
        "copy", ledger.compared is not None and not ledger.differences, _comparison(ledger), f"{adopt} --copy"
    )
    mirror = (
        "ringlog mirror --listen HOST:5001 --old tds://OLD:5000 --new tds://NEW:5000 --report mirror.jsonl"
    )
    yield Step("mirror", None, "its report has the differences", mirror)
    switch = "ringlog mirror-switch new --control mirror.jsonl.socket"
    yield Step("cut-over", None, "once the report stays empty, after a last copy", switch)


def _objects(
    connection: psycopg.Connection, folder: Path, databases: Sequence[dict[str, Any]]
) -> Iterator[Step]:
    rings = {name for (name,) in connection.execute("select table_name from ringlog.every_table")}
    tables: dict[str, bool] = {}
    modules: dict[str, bool] = {}
    for database in databases:
        schema = database["database"].lower()
        there = {name for (name,) in connection.execute(_THERE, [schema])}
        refused = {each["name"] for each in database["modules"] if not each["compiled"]}
        tables |= {ring["name"]: ring["name"].lower() in rings for ring in database["rings"]}
        for kind, found in (("site_tables", tables), ("modules", modules)):
            names = [each["name"] for each in database[kind] if each["name"] not in refused]
            found |= {f"{schema}.{name}": name.lower() in there for name in names}
    yield _there(
        "schema", tables, f"ringlog init --facility {folder}/facility.toml, then {folder}/1_tables.sql"
    )
    yield _there("procedures", modules, f"{folder}/2_functions_and_views.sql to 4_triggers.sql")


def _there(step: str, found: dict[str, bool], command: str) -> Step:
    missing = [name for name, is_there in found.items() if not is_there]
    state = f"{len(found) - len(missing)} of {len(found)} are there"
    return Step(step, not missing, state + (f", not {', '.join(missing)}" if missing else ""), command)


def _comparison(ledger: Ledger) -> str:
    state = f"{len(ledger.weeks)} weeks and rings were copied and are the same"
    if ledger.compared is None:
        return f"{state}; no run has compared all"
    if not ledger.differences:
        return f"{state}; last compared {ledger.compared}"
    return f"{state}; last compared {ledger.compared}, NOT THE SAME: {'; '.join(ledger.differences)}"


def _history(connection: psycopg.Connection, rings: Sequence[dict[str, Any]], options: str) -> Step:
    """Weeks that go straight into the archive."""
    logs = [ring["name"].lower() for ring in rings if ring["log"]]
    if connection.execute("select from ringlog.history").rowcount == 0:
        return Step("history", True, "the facility has no archive: copy takes all rows", "")
    known = {table: (reached, done) for table, reached, done in connection.execute(_HISTORY)}
    left = [table for table in logs if not known.get(table, (None, False))[1]]
    states = [
        f"{table} done to {known[table][0]:%Y-%m-%d}"
        if known.get(table, (None,))[0]
        else f"{table} not begun"
        for table in logs
    ]
    command = f"ringlog migrate history {left[0] if left else 'TABLE'} --from tds://USER@HOST/DATABASE"
    command += f" {options}" if options else ""
    return Step("history", not left, ", ".join(states) or "no ring has a log", command)
