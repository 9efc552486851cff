"""Installs the tables of samples of a facility, and the signals that its file lists."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from ringlog.procedures import sample_views
from ringlog.schema import how_taken
from ringlog.schema.change import run
from ringlog.schema.facility import Facility, SampleSignal, SampleTable
from ringlog.schema.installing.report import differences
from ringlog.schema.layout import LOG, LOG_TABLES, READER
from ringlog.schema.registry import FOREVER, signal
from ringlog.schema.relations import statistics, summaries
from ringlog.schema.relations.partitions import make_first_partitions
from ringlog.schema.relations.sample_tables import OF_SOURCE, known_tables, log, sample_signal, sample_table


def install(connection: sa.Connection, facility: Facility) -> tuple[list[str], list[str]]:
    """Makes and changes the tables of samples, and the signals that the file lists. Returns the created and
    the changed things."""
    created, changed = [], []
    known = known_tables(connection)
    how_taken.record(connection, facility.sample_tables, facility.policies)
    for table in facility.sample_tables:
        row = {
            "table_name": table.name,
            "description": table.description,
            "type": str(table.type),
            "ring": table.ring,
            "retention": table.retention and str(table.retention),
            "clock_drift": table.clock_drift.total_seconds(),
        }
        if table.name not in known:
            _create(connection, table)
            connection.execute(sample_table.insert().values(row))
            created.append(f"table {table.name}")
        else:
            before = {name: known[table.name][name] for name in row}
            if before != row:
                connection.execute(
                    sample_table.update().where(sample_table.c.table_name == table.name).values(row)
                )
                texts = [{name: str(value) for name, value in each.items()} for each in (before, row)]
                changed.append(f"table {table.name}: {differences(*texts)}")
            if before["ring"] != row["ring"]:
                run(connection, sample_views(table.name, table.ring, table.points))
        changed += _record_signals(connection, table)
    changed += summaries.create_missing(connection, facility.sample_tables)
    return created, changed


def _create(connection: sa.Connection, table: SampleTable) -> None:
    log(table).create(connection)
    name = sql.Identifier(LOG_TABLES, table.name)
    if not table.type.is_text:
        # arrays of readings hardly become smaller
        for column in ("times", "points" if table.type.is_array else "samples"):
            run(connection, sql.SQL(f"alter table {{}} alter {column} set storage external").format(name))
    statistics.turn_off(connection, table.name)
    make_first_partitions(connection, table.name)
    connection.execute(sa.select(sa.func.ringlog.view_samples(table.name)))
    run(connection, sample_views(table.name, table.ring, table.points))
    views = [sql.Identifier(schema, table.name) for schema in (LOG, "online")]
    readers = sql.Identifier(READER)
    run(connection, sql.SQL("grant select on {}, {}, {} to {}").format(name, *views, readers))


def _record_signals(connection: sa.Connection, table: SampleTable) -> list[str]:
    """Adds the signals that the file lists, updates their properties, and retires those it listed before."""
    listed = {each.name: each for each in table.signals}
    of_table = sample_signal.c.table_name == table.name
    there = {row.signal: row for row in connection.execute(sa.select(sample_signal).where(of_table))}
    now = {
        row["signal"]: row
        for row in connection.execute(
            sa.select(signal).where(signal.c.table_name == table.name, signal.c.valid_to.is_(None))
        ).mappings()
    }
    _add(connection, table, [each for name, each in listed.items() if name not in there])
    changed = []
    # own settings that are to be another, and whether they hold from now on
    settings: dict[int, tuple[dict[str, Any], bool]] = {}
    for name, row in there.items():
        of_signal = sample_signal.update().where(sample_signal.c.number == row.number)
        if name in listed and _source(listed[name]) != {key: row._mapping[key] for key in OF_SOURCE}:
            connection.execute(of_signal.values(_source(listed[name])))
            _note(connection, table.name, [name], "change")
            changed.append(f"signal {name}: another address, deadband or policy")
        if name not in listed:
            if row.listed and row.state != "retired":
                connection.execute(sa.select(sa.func.ringlog.retire_signal(name)))
                changed.append(f"signal {name}: ends; its samples can be read")
            if row.listed:
                connection.execute(of_signal.values(listed=False))
        elif name in now:
            if json.loads(row.own) != (own := _own(listed[name])):
                settings[row.number] = own, True
            if not row.listed:
                connection.execute(of_signal.values(listed=True))
        elif not row.listed:
            # one that the file still lists stays retired: that was an archivist's decision
            connection.execute(of_signal.values(listed=True, state="active"))
            description = {
                "signal": name,
                "table_name": table.name,
                "column_name": str(row.number),
                "type": str(table.type),
                "unit": "",
                "description": "",
            }
            connection.execute(signal.insert().values(description))
            settings[row.number] = _own(listed[name]), False
            _note(connection, table.name, [name])
            changed.append(f"signal {name}: is there again")
    return changed + _settle(connection, settings, now)


def _add(connection: sa.Connection, table: SampleTable, new: Sequence[SampleSignal]) -> None:
    """Adds signals that the table never had, all at once: there may be thousands."""
    if not new:
        return
    # names that other signals had before they were renamed
    formers = signal.c.signal == sa.any_(sa.literal([each.name for each in new], postgresql.ARRAY(sa.TEXT)))
    connection.execute(
        signal.update().where(formers, signal.c.valid_to == FOREVER).values(valid_to=sa.func.now())
    )
    insert = (
        "insert into ringlog.sample_signal (table_name, signal, listed, address, deadband, policy, own)"
        " select :table, given.signal, true, given.address, given.deadband, given.policy, given.own"
        " from unnest(cast(:names as text[]), cast(:addresses as text[]), cast(:deadbands as text[]),"
        " cast(:policies as text[]), cast(:own as text[]))"
        " with ordinality as given (signal, address, deadband, policy, own, position)"
        " order by given.position returning signal, number"
    )
    parameters: dict[str, Any] = {
        "table": table.name,
        "names": [each.name for each in new],
        "addresses": [each.address for each in new],
        "deadbands": [each.deadband for each in new],
        "policies": [each.policy for each in new],
        "own": [json.dumps(_own(each)) for each in new],
    }
    numbers = {row.signal: row.number for row in connection.execute(sa.text(insert), parameters)}
    common = {"table_name": table.name, "type": str(table.type)}
    rows = [
        {"signal": each.name, **common, "column_name": str(numbers[each.name]), **_description(each)}
        for each in new
    ]
    connection.execute(signal.insert(), rows)
    _note(connection, table.name, parameters["names"])
    run(connection, "analyze ringlog.signal, ringlog.sample_signal")


def _note(connection: sa.Connection, table: str, names: Sequence[str], change: str = "add") -> None:
    insert = (
        "insert into ringlog.signal_change (login, program, table_name, signal, change, detail)"
        " select session_user, 'installation', :table, each, :change, 'facility file'"
        " from unnest(cast(:names as text[])) as each"
    )
    connection.execute(sa.text(insert), {"table": table, "names": [*names], "change": change})


def _description(each: SampleSignal) -> dict[str, Any]:
    """The columns of ringlog.signal that the file determines."""
    return {
        "unit": each.unit,
        "description": each.description,
        "limit_low": each.limits and each.limits[0],
        "limit_high": each.limits and each.limits[1],
        "alarm_low": each.alarm_limits and each.alarm_limits[0],
        "alarm_high": each.alarm_limits and each.alarm_limits[1],
        "states": json.dumps(dict(each.states), ensure_ascii=False) if each.states else None,
        "held": each.held,
    }


_DESCRIPTION = tuple(_description(SampleSignal("")))


def _own(each: SampleSignal) -> dict[str, Any]:
    """Those of them that the file sets; the source may send others."""
    return {
        key: value
        for key, value in _description(each).items()
        # a limit of 0 is one
        if value is not None and value is not False and value != ""
    }


def _source(each: SampleSignal) -> dict[str, str]:
    """The settings by which its writer takes the signal."""
    return {key: getattr(each, key) for key in OF_SOURCE}


def _settle(
    connection: sa.Connection, settings: Mapping[int, tuple[dict[str, Any], bool]], now: Mapping[str, Any]
) -> list[str]:
    """Gives signals these own settings, from now on or for the whole time of an entry. Returns those that
    were other `now`, each with its differences."""
    if not settings:
        return []
    update = (
        "update ringlog.sample_signal as known set own = given.own"
        " from unnest(cast(:numbers as integer[]), cast(:own as text[])) as given (number, own)"
        " where known.number = given.number"
    )
    numbers = {"numbers": [*settings]}
    connection.execute(sa.text(update), numbers | {"own": [json.dumps(own) for own, _ in settings.values()]})
    settle = (
        "select ringlog.settle_signals(cast(:numbers as integer[]),"
        " array(select case when is_new then clock_timestamp() end"
        " from unnest(cast(:are_new as boolean[])) with ordinality as flag (is_new, at) order by at))"
    )
    connection.execute(sa.text(settle), numbers | {"are_new": [is_new for _, is_new in settings.values()]})
    changed = []
    of_numbers = signal.c.column_name == sa.any_(sa.literal([*map(str, settings)], postgresql.ARRAY(sa.TEXT)))
    names = sa.any_(sa.literal([*now], postgresql.ARRAY(sa.TEXT)))
    query = sa.select(signal).where(signal.c.signal == names, of_numbers, signal.c.valid_to.is_(None))
    for row in connection.execute(query).mappings():
        before = now[row["signal"]]
        texts = [{name: str(one[name]) for name in _DESCRIPTION} for one in (before, row)]
        if texts[0] != texts[1]:
            changed.append(f"signal {row['signal']}: {differences(*texts)}")
    return changed
