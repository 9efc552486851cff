"""What an old database becomes, as files: a facility file, T-SQL of all that is the site's, its logins."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from ringlog.adoption.catalogue import Old, OldTable, quoted
from ringlog.adoption.rings import Ring, Sorted, facility_type

_ORDER = ("function", "view", "procedure", "trigger")


def write(folder: Path, old: Old, found: Sorted, timezone: str) -> list[str]:
    """Writes the files into the folder; their names, with what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    told = []
    if found.rings:
        (folder / "facility.toml").write_text("\n".join(facility(found.rings, timezone)) + "\n")
        told.append(f"facility.toml: {len(found.rings)} tables")
    scripts: dict[str, list[str]] = {"1_tables.sql": [_create(table) for table in found.site]}
    for place, kind in enumerate(_ORDER, 2):
        texts = [module.text.strip() for module in old.modules if module.kind == kind and module.text.strip()]
        scripts[f"{place}_{kind}s.sql"] = texts
    scripts["6_grants.sql"] = [
        f"grant {grant.right.lower()} on {quoted(grant.what)} to {quoted(grant.who)}" for grant in old.grants
    ]
    for name, texts in scripts.items():
        if texts:
            (folder / name).write_text("".join(f"{text}\ngo\n" for text in texts))
            told.append(f"{name}: {len(texts)}")
    if old.logins:
        lines = [f"ringlog user add {_shell(login)} --reader --writer" for login in old.logins]
        (folder / "logins.sh").write_text(
            "\n".join(["# choose what each may do, and its password", *lines, ""])
        )
        told.append(f"logins.sh: {len(old.logins)}")
    return told


def _shell(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def facility(rings: Sequence[Ring], timezone: str) -> Iterator[str]:
    """The lines of the facility file."""
    yield f"timezone = {json.dumps(timezone)}"
    for ring in rings:
        yield "\n[[table]]"
        yield f"name = {json.dumps(ring.table.name.lower())}"
        yield f"rows = {ring.table.rows}"
        yield f"cycle = {ring.cycle}"
        yield 'log = "every"'
        for column in ring.table.columns:
            if column.name in (ring.seq_no, ring.time):
                continue
            yield "\n[[table.column]]"
            yield f"name = {json.dumps(column.name.lower())}"
            yield f"type = {json.dumps(facility_type(column.type, column.length))}"


def _create(table: OldTable) -> str:
    lines = [
        f"    {quoted(column.name)} {column.declared} {'null' if column.nullable else 'not null'}"
        for column in table.columns
    ]
    lines += [
        f"    {'primary key' if place == 0 else 'unique'} ({', '.join(quoted(name) for name in key)})"
        for place, key in enumerate(table.keys)
    ]
    return f"create table {quoted(table.name)} (\n" + ",\n".join(lines) + "\n)"
