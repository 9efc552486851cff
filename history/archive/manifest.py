"""The manifest of the archive: the weeks and their files. It is the table ringlog.cold_week."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import count
from tempfile import TemporaryFile

import sqlalchemy as sa
from psycopg import sql

from ringlog.history.archive.folder import Damaged, Folder, aside
from ringlog.history.archive.parquet import files
from ringlog.history.archive.parquet.forms import ROWS, SAMPLES, Rows
from ringlog.schema.catalogue import is_of_samples
from ringlog.schema.change import announce
from ringlog.schema.moments import in_utc
from ringlog.schema.relations.partitions import Week
from ringlog.schema.relations.tiers import archive_file, archived_tables, cold_week, leave_manifest
from ringlog.schema.session import driver

MANIFEST = "manifest.json"
_WRITTEN = ("table", "begins", "file", "rows", "bytes", "sha256")

_SPOOLED = 1 << 20  # bytes


@dataclass(frozen=True)
class ColdWeek:
    """A week in the manifest, by its table and first moment; times are in UTC."""

    table: str
    begins: datetime
    ends: datetime
    file: str
    rows: int
    bytes: int
    sha256: str
    footer: str
    recalled_until: datetime | None


_FIELDS = [field.name for field in fields(ColdWeek)]


def settings(connection: sa.Connection) -> tuple[timedelta, str] | None:
    """The age at which weeks leave the log, and the archive's folder; None if there is no archive."""
    found = connection.execute(
        sa.text("select extract(epoch from online::interval)::bigint, archive from ringlog.history")
    ).one_or_none()
    return None if found is None else (timedelta(seconds=found[0]), str(found[1]))


def manifest(connection: sa.Connection, table: str | None = None) -> list[ColdWeek]:
    query = sa.select(*(column for column in cold_week.c if column.name != "written")).order_by(
        cold_week.c.table_name, cold_week.c.begins
    )
    if table is not None:
        query = query.where(cold_week.c.table_name == table)
    return [
        ColdWeek(**{name: in_utc(value) for name, value in zip(_FIELDS, row, strict=True)})
        for row in connection.execute(query)
    ]


def new_file(connection: sa.Connection, folder: Folder, table: str, week: Week) -> str:
    """A new name for a week's file, recorded in the database. A file that replaces another has the next
    number: no name is used twice, also not one of another database."""
    first = f"{table}/{week.start:%Gw%V}"
    recorded = sa.union(sa.select(cold_week.c.file), sa.select(archive_file.c.file))
    numbered = re.compile(re.escape(first) + r"(?:-(\d+))?\.parquet")
    named = map(numbered.fullmatch, connection.scalars(recorded))
    used = [int(found[1] or 1) for found in named if found]
    for number in count(max(used, default=0) + 1):
        name = f"{first}{'' if number == 1 else f'-{number}'}.parquet"
        if not folder.exists(name) and not folder.exists(aside(name)):
            break
    connection.execute(archive_file.insert().values(file=name))
    return name


def note(connection: sa.Connection, week: ColdWeek) -> None:
    """Enters a week in the manifest, in place of its previous entry."""
    forget(connection, week)
    if week.rows and week.table not in archived_tables(connection):
        # the gateway must know that the log lacks rows
        announce(connection, "moved")
    row = {name: value for name, value in vars(week).items() if name != "table"}
    connection.execute(cold_week.insert().values(table_name=week.table, **row))


def forget(connection: sa.Connection, week: ColdWeek) -> None:
    """Removes a week from the manifest; its file is kept for `keep_replaced`."""
    gone = (cold_week.c.table_name == week.table) & (cold_week.c.begins == week.begins)
    deleted = cold_week.delete().where(gone).returning(cold_week.c.file)
    leave_manifest(connection, connection.scalars(deleted).all())


def write_manifest(connection: sa.Connection, folder: Folder) -> None:
    """Writes the manifest to a file in the folder, for use of the folder without the database.

    It is compared with the file, because the round that changed it may have been killed or found a full disk.
    """
    weeks = [{name: getattr(week, name) for name in _WRITTEN} for week in manifest(connection)]
    content = json.dumps(weeks, indent=1, default=datetime.isoformat).encode()
    with suppress(Damaged, OSError), folder.opened(MANIFEST) as stream:
        if stream.read() == content:
            return
    with folder.created(MANIFEST) as stream:
        stream.write(content)


def verify(folder: Folder, week: ColdWeek) -> None:
    """Compares a file with the manifest. Raises Damaged."""
    if folder.digest(week.file) != week.sha256:
        raise Damaged(f"{folder}/{week.file} differs from the file that was written: its SHA-256 is another")
    rows = sum(batch.num_rows for batch in files.read(folder, week.file, ["time"], footer=week.footer))
    if rows != week.rows:
        raise Damaged(f"{folder}/{week.file} has {rows} rows, not {week.rows}")


def damages(folder: Folder, weeks: Iterable[ColdWeek]) -> Iterator[Damaged]:
    """Reads all files and yields the error of each that is not intact."""
    for week in weeks:
        try:
            verify(folder, week)
        except Damaged as error:
            yield error


def form_of_table(connection: sa.Connection, table: str) -> Rows:
    """The form of a table's files."""
    return SAMPLES if is_of_samples(connection, table) else ROWS


def about(connection: sa.Connection, table: str) -> dict[str, str]:
    """The table's description in a file's metadata. Samples have retired signals too."""
    signals = connection.execute(
        sa.text(
            "select distinct on (column_name) column_name, signal, type, unit, signal.description"
            " from ringlog.signal join ringlog.every_table using (table_name)"
            " where table_name = :table and (valid_to is null or is_of_samples)"
            " order by column_name, valid_from desc"
        ),
        {"table": table},
    ).mappings()
    return {"ringlog.table": table, "ringlog.signals": json.dumps([dict(row) for row in signals])}


def default_partition(table: str) -> sql.Identifier:
    """The partition in which rows of a cold week arrive."""
    return sql.Identifier("log", f"{table}_default")


def refill_default(connection: sa.Connection, table: str, rows: sql.Composable) -> None:
    """Fills the default partition of a log with the rows of this query, and no others.

    Snapshots taken before have them too, as they have the rows of a new file: TRUNCATE and COPY FREEZE are
    for all snapshots, DELETE and INSERT are not.
    """
    partition = default_partition(table)
    with TemporaryFile() as kept, driver(connection).cursor() as cursor:
        with cursor.copy(sql.SQL("copy ({}) to stdout (format binary)").format(rows)) as copy:
            for data in copy:
                kept.write(data)
        cursor.execute(sql.SQL("truncate {}").format(partition))
        kept.seek(0)
        with cursor.copy(sql.SQL("copy {} from stdin (format binary, freeze)").format(partition)) as copy:
            while data := kept.read(_SPOOLED):
                copy.write(data)
