"""Whether a database is as an installation left it: then the next one of the same file compares nothing.

To compare all of 600 tables takes seconds. So an installation that has found everything as it should be
notes of which file it was, by which sources of ringlog, and the state of PostgreSQL's catalogue: for every
row about ringlog's objects its place (ctid) and the transaction that wrote it (xmin). Whoever changes or
makes an object, or grants a right to it, writes another row at another place; who drops it deletes the row.
After a VACUUM FULL of the catalogue, pg_upgrade, or pg_dump and restore the rows are others as well. In all
these cases everything is compared.

What housekeeping changes by itself is left out, and no installation compares it: partitions of the logs, the
moment from which on a view of `recent` has rows, statistics.
"""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeAlias

import sqlalchemy as sa

from ringlog.schema.facility import Facility
from ringlog.schema.roles import RECENT, SCHEMAS

metadata = sa.MetaData(schema="ringlog")

installation = sa.Table(
    "installation",
    metadata,
    sa.Column("facility", sa.TEXT, nullable=False, comment="digest of the facility file"),
    sa.Column("sources", sa.TEXT, nullable=False, comment="digest of ringlog's own sources"),
    sa.Column("server", sa.TEXT, nullable=False, comment="PostgreSQL's version, and the database"),
    sa.Column("next_transaction", sa.NUMERIC(20), nullable=False),
    sa.Column(
        "catalogue", sa.TEXT, nullable=False, comment="rows of the catalogue: how many, and their digest"
    ),
    comment="the latest installation that found everything as it should be",
)

State: TypeAlias = dict[str, Any]
"""A row of `installation`."""

_WRAPS = 2**31
"""transactions after which a note is not used: xmin has 32 bits"""

_STATE = """
with
  schema as materialized (
    select oid, nspname, ctid, xmin from pg_namespace where nspname = any(:schemas)
  ),
  object as materialized (
    select pg_class.oid, pg_class.ctid, pg_class.xmin, relname, relkind, nspname = :recent as moves
    from pg_class join schema on schema.oid = relnamespace
    where not relispartition
  ),
  relation as materialized (select oid, moves from object where relkind in ('r', 'p', 'v', 'm', 'f', 'c')),
  found (kind, rows, digest) as (
    select 'schemas', count(*), sum(hash_record_extended(row (ctid, xmin), 0)) from schema
    union all
    select 'relations', count(*), sum(hash_record_extended(row (ctid, xmin), 0)) from object where not moves
    union all
    select 'views that move', count(*), sum(hash_record_extended(row (oid, relname, relkind), 0))
    from object where moves
    union all
    select 'columns', sum(rows), sum(digest)
    from relation
    -- by the index: most columns are partitions'
    cross join lateral (
      select count(*) as rows, sum(hash_record_extended(row (ctid, xmin), 0)) as digest
      from pg_attribute where attrelid = relation.oid and attnum > 0
      offset 0
    ) as columns
    union all
    select 'defaults', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_attrdef where adrelid in (select oid from relation)
    union all
    select 'constraints', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_constraint where conrelid in (select oid from relation)
    union all
    select 'indexes', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_index where indrelid in (select oid from relation)
    union all
    select 'triggers', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_trigger where tgrelid in (select oid from relation)
    union all
    select 'rules', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_rewrite where ev_class in (select oid from relation where not moves)
    union all
    select 'policies', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_policy where polrelid in (select oid from relation)
    union all
    select 'types', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_type where typnamespace in (select oid from schema) and (typrelid = 0 and typelem = 0)
    union all
    select 'functions', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from pg_proc where pronamespace in (select oid from schema)
    union all
    select 'registered tables', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from ringlog.logged_table
    union all
    select 'registered signals', count(*), sum(hash_record_extended(row (ctid, xmin), 0)) from ringlog.signal
    union all
    select 'registered procedures', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from ringlog.procedure
    union all
    select 'former names', count(*), sum(hash_record_extended(row (ctid, xmin), 0)) from ringlog.former_table
    union all
    select 'registered parameters', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from ringlog.parameter_table
    union all
    select 'columns of parameters', count(*), sum(hash_record_extended(row (ctid, xmin), 0))
    from ringlog.parameter_column
    union all
    -- the other columns are housekeeping's
    select 'summaries', count(*), sum(hash_record_extended(row (table_name, levels), 0))
    from ringlog.summarised
  )
select
  string_agg(format('%s %s %s', kind, rows, digest), ', ' order by kind) as catalogue,
  concat_ws(
    ' ',
    current_setting('server_version_num'),
    (select oid from pg_database where datname = current_database())
  ) as server,
  pg_snapshot_xmax(pg_current_snapshot())::text::numeric as next_transaction
from found
"""


def state(connection: sa.Connection, facility: Facility) -> State | None:
    """The row that `note` stores when an installation of this facility finds nothing to change. It is to be
    read before the installation compares, so that a change meanwhile makes another one. None: the facility
    is not one of a file."""
    if facility.digest is None:
        return None
    words = {"schemas": [*SCHEMAS], "recent": RECENT}
    catalogue = connection.execute(sa.text(_STATE), words).mappings().one()
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


@cache
def _sources() -> str:
    """The digest of what decides how a facility is installed."""
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
