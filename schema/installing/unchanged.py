"""Whether a database is unchanged since an installation: then the next one of the same file compares nothing.

Comparing 600 tables takes seconds. So an installation that finds nothing to change records its file, the
sources of ringlog, and the state of PostgreSQL's catalogue: for every row about ringlog's objects its address
(ctid) and the transaction that wrote it (xmin). A changed or new object or right has another row at another
address; a dropped object has none. After a VACUUM FULL of the catalogue, pg_upgrade, or pg_dump and restore
the rows differ as well. In all these cases everything is compared.

Objects that housekeeping changes are left out, and no installation compares them: partitions of the logs, the
start of the views of `recent`, closed rows, statistics.
"""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeAlias

import sqlalchemy as sa

from ringlog.schema.access.roles import become_owner
from ringlog.schema.facility import Facility
from ringlog.schema.layout import ARCHIVE_FILES, CLOSED, ICEBERG, RECENT, SCHEMAS, SET_ASIDE
from ringlog.schema.own_tables import own_column, own_table, text
from ringlog.schema.sql_files import sql_file

installation = own_table(
    "installation",
    text("facility", "digest of the facility file"),
    text("sources", "digest of ringlog's own sources"),
    text("server", "PostgreSQL's version, and the database"),
    own_column(sa.NUMERIC(20), "next_transaction"),
    text("catalogue", "rows of the catalogue: how many, and their digest"),
    comment="the latest installation that found nothing to change",
)

State: TypeAlias = dict[str, Any]
"""A row of `installation`."""

_WRAPS = 2**31
"""transactions after which a note is not used: xmin has 32 bits"""

# rows of the catalogue: kind, relation, and the compared columns
_VERSION = "ctid, xmin"
_KINDS = (
    ("schemas", "schema", _VERSION),
    ("relations", "object where not moves", _VERSION),
    ("views that move", "object where moves", "oid, relname, relkind"),
    ("defaults", "pg_attrdef where adrelid in (select oid from relation)", _VERSION),
    ("constraints", "pg_constraint where conrelid in (select oid from relation)", _VERSION),
    ("indexes", "pg_index where indrelid in (select oid from relation)", _VERSION),
    ("triggers", "pg_trigger where tgrelid in (select oid from relation)", _VERSION),
    ("rules", "pg_rewrite where ev_class in (select oid from relation where not moves)", _VERSION),
    ("policies", "pg_policy where polrelid in (select oid from relation)", _VERSION),
    (
        "types",
        "pg_type where typnamespace in (select oid from schema) and typrelid = 0 and typelem = 0",
        _VERSION,
    ),
    ("functions", "pg_proc where pronamespace in (select oid from schema)", _VERSION),
    ("registered tables", "ringlog.logged_table", _VERSION),
    ("registered signals", "ringlog.signal", _VERSION),
    ("registered procedures", "ringlog.procedure", _VERSION),
    ("former names", "ringlog.former_table", _VERSION),
    ("registered parameters", "ringlog.parameter_table", _VERSION),
    ("columns of parameters", "ringlog.parameter_column", _VERSION),
    ("signals of samples", "ringlog.sample_signal", _VERSION),
    # the other columns are housekeeping's
    (
        "tables of samples",
        "ringlog.sample_table",
        "table_name, type, ring, retention, clock_drift, description",
    ),
    ("summaries", "ringlog.summarised", "table_name, levels"),
)


def _digest(kind: str, rows: str, of: str) -> str:
    return f"select '{kind}', count(*), sum(hash_record_extended(row ({of}), 0)) from {rows}"


_STATE = sql_file(__file__, "unchanged_state").format(
    columns=_digest("", "pg_attribute where attrelid = relation.oid and attnum > 0", _VERSION),
    kinds=" union all ".join(_digest(*kind) for kind in _KINDS),
)


def state(connection: sa.Connection, facility: Facility) -> State | None:
    """The row that `note` stores when an installation of this facility finds nothing to change. It is to be
    read before the installation compares, so that a change meanwhile makes another one. None: the facility
    is not one of a file."""
    if facility.digest is None:
        return None
    others = (ARCHIVE_FILES, CLOSED, ICEBERG, SET_ASIDE)
    parameters = {"schemas": [schema for schema in SCHEMAS if schema not in others], "recent": RECENT}
    catalogue = connection.execute(sa.text(_STATE), parameters).mappings().one()
    return {"facility": facility.digest, "sources": _sources(), **catalogue}


def is_noted(connection: sa.Connection, now: State | None) -> bool:
    """Whether an installation has noted the same state, and not too many transactions ago."""
    noted = connection.execute(sa.select(installation)).mappings().one_or_none()
    if now is None or noted is None:
        return False
    passed = now["next_transaction"] - noted["next_transaction"]
    return 0 <= passed < _WRAPS and now | {"next_transaction": None} == {**noted, "next_transaction": None}


def note(connection: sa.Connection, state: State) -> None:
    connection.execute(installation.delete())
    connection.execute(installation.insert().values(state))


def note_now(connection: sa.Connection, facility: Facility) -> None:
    """Notes the present state as that of an installation of this facility."""
    become_owner(connection)
    if (now := state(connection, facility)) is not None:
        note(connection, now)


@cache
def _sources() -> str:
    """The digest of everything that determines an installation."""
    digest = sha256()
    for package in ("ringlog.schema", "ringlog.procedures"):
        for name, content in sorted(_contents(files(package), package)):
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _contents(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found = []
    for each in folder.iterdir():
        name = f"{path}/{each.name}"
        if each.is_dir():
            found += _contents(each, name)
        elif each.name.endswith((".py", ".sql")):
            found.append((name, each.read_bytes()))
    return found
