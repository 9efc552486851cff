"""How rows of each table are taken, and since when: settings that leave fewer rows than cycles in the log."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ringlog.schema.facility import SamplePolicy, SampleTable, Table
from ringlog.schema.own_tables import double, own_table, text, timestamp

how_taken = own_table(
    "how_taken",
    text("table_name", key=True),
    timestamp("valid_from", key=True, default=sa.func.now()),
    double("cycle", "seconds from row to row; null: a table of samples", null=True),
    double("longest", "most seconds from row to row of the log; null: only changes give rows", null=True),
    text("settings", "in the terms of the facility file"),
    comment="settings by which rows of each table are taken for its log",
)


def longest_distance(table: Table) -> float | None:
    """Maximum seconds from row to row of a writer; None if only changes give rows."""
    sample = table.sample
    if sample.max_period is not None:
        return max(sample.max_period, table.cycle)
    if sample.mode == "monitor" or any(column.deadband for column in table.columns):
        return None
    return table.cycle


def record(
    connection: sa.Connection, tables: Sequence[Table | SampleTable], policies: Sequence[SamplePolicy] = ()
) -> None:
    """Adds the settings of tables to `how_taken`, where they have changed. `policies` are for samples."""
    rows = [
        _of_samples(table, policies) if isinstance(table, SampleTable) else _of_rows(table)
        for table in tables
    ]
    query = sa.text(
        "select distinct on (table_name) * from ringlog.how_taken where table_name = any(:names)"
        " order by table_name, valid_from desc"
    )
    found = connection.execute(query, {"names": [row["table_name"] for row in rows]})
    known = {row["table_name"]: row for row in found.mappings()}
    changed = [
        row
        for row in rows
        if (there := known.get(row["table_name"])) is None or any(there[name] != row[name] for name in row)
    ]
    if changed:
        connection.execute(how_taken.insert(), changed)


def _of_rows(table: Table) -> dict[str, Any]:
    sample, log, longest = table.sample, table.log, longest_distance(table)
    words = [f"cycle = {table.cycle:g} s", f'sample = "{sample.mode}"']
    for name in ("min_period", "max_period"):
        if (seconds := getattr(sample, name)) is not None:
            words.append(f"{name} = {seconds:g} s")
    if any(column.deadband for column in table.columns):
        words.append("columns with a deadband")
    if log.period is not None:
        words.append(f"log = {{ period = {log.period:g} }}")
        longest = None if longest is None else longest + log.period
    elif log.nth > 1:
        words.append(f"log = {{ nth = {log.nth} }}")
        longest = None if longest is None else longest * log.nth
    return _row(table.name, table.cycle, longest, words)


def _of_samples(table: SampleTable, policies: Sequence[SamplePolicy]) -> dict[str, Any]:
    words = ["a sample when the source sends another value"]
    if table.deadband:
        words.append(f"deadband = {table.deadband}")
    words += [
        f"policy {each.name}: " + ("every value" if each.period is None else f"one in {each.period:g} s")
        for each in policies
    ]
    return _row(table.name, None, None, words)


def _row(name: str, cycle: float | None, longest: float | None, words: Sequence[str]) -> dict[str, Any]:
    return {"table_name": name, "cycle": cycle, "longest": longest, "settings": ", ".join(words)}
