"""What ringlog makes of a text, and makes again when that is another one: procedures, the catalogue of T-SQL.

`ringlog.procedure` has a digest of the text that each procedure was made of, and one of what PostgreSQL made
of it, so that a change by anybody else is seen too.
"""

from collections.abc import Collection, Iterable
from enum import Enum
from itertools import islice

import sqlalchemy as sa
from psycopg import sql

from ringlog.procedures import Procedure, system_script
from ringlog.schema.change import run
from ringlog.schema.registry import procedure

_COMPARED = 100
"""procedures whose texts are in memory at once: those of thousands of tables are hundreds of megabytes"""

_DEFINITION = "encode(sha256(convert_to(pg_get_functiondef(pg_proc.oid), 'utf8')), 'hex')"

_SYSTEM_COMMENT = "T-SQL's system procedures, functions and catalogue views, made of "


class Before(Enum):
    """What something was before it was made."""

    ABSENT = "absent"
    OTHER = "made of another text"
    FOREIGN = "made or changed by somebody else"


def renew(connection: sa.Connection, wanted: Iterable[Procedure]) -> dict[str, Before]:
    """Makes those of these procedures that are not there, or are not what they would be now. What these were
    before, by name."""
    renewed: dict[str, Before] = {}
    rest = iter(wanted)
    while some := {each.name: each for each in islice(rest, _COMPARED)}:
        there = _digests(connection, some)
        due = {name: each for name, each in some.items() if there.get(name) != each.digest}
        for name, each in due.items():
            run(connection, each.source)
            before = Before.FOREIGN if there.get(name) is None else Before.OTHER
            renewed[name] = before if name in there else Before.ABSENT
        _note(connection, due.values())
    return renewed


def _digests(connection: sa.Connection, names: Collection[str]) -> dict[str, str | None]:
    """Those of these procedures that are there, each with the digest of the text it was made of; None for one
    that somebody else has made or changed since."""
    statement = sa.text(
        f"select proname, case when definition = {_DEFINITION} then source end as source"
        " from pg_proc left join ringlog.procedure on procedure.name = proname"
        " where pronamespace = 'ringlog'::regnamespace and prokind = 'f' and proname = any(:names)"
    )
    return {row.proname: row.source for row in connection.execute(statement, {"names": [*names]})}


def _note(connection: sa.Connection, made: Collection[Procedure]) -> None:
    """Notes what procedures that have just been made were made of, and what PostgreSQL made of that."""
    statement = sa.text(
        "insert into ringlog.procedure (name, source, definition)"
        f" select proname, made.source, {_DEFINITION}"
        " from unnest(cast(:names as text[]), cast(:sources as text[])) as made (name, source)"
        " join pg_proc on pronamespace = 'ringlog'::regnamespace and proname = made.name"
        " on conflict (name) do update set source = excluded.source, definition = excluded.definition"
    )
    if made:
        words = {"names": [each.name for each in made], "sources": [each.digest for each in made]}
        connection.execute(statement, words)


def drop(connection: sa.Connection, names: Collection[str]) -> list[str]:
    """Drops those of these procedures that are there, and forgets them; their names."""
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
    """Makes the system procedures and views, all of them anew when any of them would be another now. What
    they were before; None: they are as they would be."""
    script = system_script()
    wanted = _SYSTEM_COMMENT + script.digest
    there = connection.scalar(sa.text("select obj_description('sys'::regnamespace, 'pg_namespace')"))
    if there == wanted:
        return None
    run(connection, script.source)
    run(connection, sql.SQL("comment on schema sys is {}").format(sql.Literal(wanted)))
    return Before.OTHER if there else Before.ABSENT
