"""Procedures and the catalogue of T-SQL, which are created again when their text has changed.

`ringlog.procedure` has a digest of each procedure's text, and one of PostgreSQL's definition of it, which
detects changes by others.
"""

from collections.abc import Collection, Iterable
from enum import Enum
from itertools import islice

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import FOR_EVERYONE, SCHEMA, Procedure, system_script
from ringlog.schema.change import run, run_all
from ringlog.schema.registry import procedure

_COMPARED = 100
"""procedures whose texts are in memory at once: those of thousands of tables are hundreds of megabytes"""

_DEFINITION = "encode(sha256(convert_to(pg_get_functiondef(pg_proc.oid), 'utf8')), 'hex')"

_UNCHECKED, _CHECKED = (f"set local check_function_bodies = {state}" for state in ("off", "on"))
_CHECK = """
select case lanname when 'sql' then fmgr_sql_validator(pg_proc.oid) else plpgsql_validator(pg_proc.oid) end
from pg_proc join pg_language on pg_language.oid = prolang
where pronamespace = 'ringlog'::regnamespace and lanname in ('sql', 'plpgsql') and proname = any(:names)
"""

_SYSTEM_COMMENT = "T-SQL's system procedures, functions and catalogue views, made of "


class Before(Enum):
    """The state of an object before it was created again."""

    ABSENT = "absent"
    OTHER = "made of another text"
    FOREIGN = "made or changed by somebody else"


def renew(connection: sa.Connection, wanted: Iterable[Procedure]) -> dict[str, Before]:
    """Creates the procedures that do not exist or whose text has changed; logins without a grant may not call
    them. Returns their former state, by name."""
    renewed: dict[str, Before] = {}
    rest = iter(wanted)
    while some := {each.name: each for each in islice(rest, _COMPARED)}:
        there = _digests(connection, some)
        due = {name: each for name, each in some.items() if there.get(name) != each.digest}
        closed = (
            sql.SQL("revoke all on function {} from public").format(sql.Identifier(SCHEMA, name))
            for name in due
            if name not in FOR_EVERYONE
        )
        run_all(connection, (_UNCHECKED, *(each.source for each in due.values()), *closed, _CHECKED))
        for name in due:
            before = Before.FOREIGN if there.get(name) is None else Before.OTHER
            renewed[name] = before if name in there else Before.ABSENT
        _note(connection, due.values())
    # each may call any other one, so bodies are checked when all are there
    connection.execute(sa.text(_CHECK), {"names": [*renewed]})
    return renewed


def _digests(connection: sa.Connection, names: Collection[str]) -> dict[str, str | None]:
    """The existing ones of these procedures, each with the digest of the text it was made of; None for one
    that others have made or changed since."""
    statement = sa.text(
        f"select proname, case when definition = {_DEFINITION} then source end as source"
        " from pg_proc left join ringlog.procedure on procedure.name = proname"
        " where pronamespace = 'ringlog'::regnamespace and prokind = 'f' and proname = any(:names)"
    )
    return {row.proname: row.source for row in connection.execute(statement, {"names": [*names]})}


def _note(connection: sa.Connection, made: Collection[Procedure]) -> None:
    """Records the digests of new procedures: of their texts and of PostgreSQL's definitions."""
    statement = sa.text(
        "insert into ringlog.procedure (name, source, definition)"
        f" select proname, made.source, {_DEFINITION}"
        " from unnest(cast(:names as text[]), cast(:sources as text[])) as made (name, source)"
        " join pg_proc on pronamespace = 'ringlog'::regnamespace and proname = made.name"
        " on conflict (name) do update set source = excluded.source, definition = excluded.definition"
    )
    if made:
        parameters = {"names": [each.name for each in made], "sources": [each.digest for each in made]}
        connection.execute(statement, parameters)


def drop(connection: sa.Connection, names: Collection[str]) -> list[str]:
    """Drops these procedures if they exist, and deletes their digests. Returns the dropped ones."""
    query = sa.text(
        "select proname, oid::regprocedure::text from pg_proc"
        " where pronamespace = 'ringlog'::regnamespace and proname = any(:names) order by proname"
    )
    found = connection.execute(query, {"names": [*names]}).all()
    for name, signature in found:
        run(connection, f"drop function {signature}")
        connection.execute(procedure.delete().where(procedure.c.name == name))
    return [name for name, _ in found]


def renew_system(connection: sa.Connection) -> Before | None:
    """Creates all system procedures and views again if any text has changed. Returns their former state;
    None: nothing has changed."""
    script = system_script()
    wanted = _SYSTEM_COMMENT + script.digest
    there = connection.scalar(sa.text("select obj_description('sys'::regnamespace, 'pg_namespace')"))
    if there == wanted:
        return None
    run(connection, script.source)
    run(connection, sql.SQL("comment on schema sys is {}").format(sql.Literal(wanted)))
    return Before.OTHER if there else Before.ABSENT
