"""The version of ringlog's own schema: numbered migrations, and which of them a database has had.

A new database is made from the SQLAlchemy objects of registry, ledger and tiers, and counts as having had all
migrations. An older one gets the missing ones, in order, in the transaction of the installation. A new
table needs none, because the installer creates missing objects. A migration changes existing objects, and is
never changed after its release: `migrations/<number>_<title>.sql`, run as ringlog_owner.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import sqlalchemy as sa

from ringlog.schema.change import run
from ringlog.schema.installing.obstacles import Obstacle
from ringlog.schema.own_tables import integer, own_table, text, timestamp

schema_version = own_table(
    "schema_version",
    integer("version", key=True, autoincrement=False),
    text("title"),
    timestamp("applied", default=sa.func.now()),
    comment="the migrations that this database has had; the greatest is its version",
)


@dataclass(frozen=True)
class Migration:
    """A migration: it brings a database from the version before to this one."""

    version: int
    title: str
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    """All of them, from version 1 on without a gap."""
    found = []
    folder = files("ringlog.schema").joinpath("migrations")
    for file in folder.iterdir() if folder.is_dir() else ():
        if named := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name):
            found.append(Migration(int(named[1]), named[2].replace("_", " "), file.read_text()))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != [*range(1, len(found) + 1)]:
        raise RuntimeError(f"the migrations are not numbered from 1 on: {[each.title for each in found]}")
    return tuple(found)


def version(connection: sa.Connection) -> int:
    """The schema's version of a database; 0 before the first migration."""
    if not sa.inspect(connection).has_table(schema_version.name, schema_version.schema):
        return 0
    return connection.scalar(sa.select(sa.func.max(schema_version.c.version))) or 0


def obstacles(connection: sa.Connection) -> Iterator[Obstacle]:
    """Refuses a database that a later ringlog has changed."""
    there, known = version(connection), len(migrations())
    if there > known:
        yield Obstacle(
            f"a later ringlog has changed this database: its schema is version {there}, and this one knows"
            f" {known}",
            "-- install that ringlog again, or restore a backup from before",
        )


def bring_up(connection: sa.Connection, *, new: bool) -> list[str]:
    """Runs the migrations that a database lacks, as ringlog_owner; their names. A `new` one has had all."""
    there = version(connection)
    done = []
    for migration in migrations()[there:]:
        if not new:
            run(connection, migration.sql)
            done.append(f"schema version {migration.version}: {migration.title}")
        connection.execute(schema_version.insert().values(version=migration.version, title=migration.title))
    return done
