"""The manifest of the archive: the weeks and their files. It is the table ringlog.cold_week."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from tempfile import TemporaryFile

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from ringlog.history.archive.folder import Damaged, Folder, aside
from ringlog.history.archive.parquet import files
from ringlog.history.archive.parquet.forms import ROWS, SAMPLES, Rows
from ringlog.schema.catalogue import is_of_samples
from ringlog.schema.change import announce
from ringlog.schema.moments import in_utc
from ringlog.schema.relations.partitions import Week
from ringlog.schema.relations.tiers import archived_tables, leave_manifest

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


_COLUMNS = "table_name, begins, ends, file, rows, bytes, sha256, footer, recalled_until"


def settings(connection: psycopg.Connection) -> tuple[timedelta, str] | None:
    """The age at which weeks leave the log, and the archive's folder; None if there is no archive."""
    query = "select extract(epoch from online::interval)::bigint, archive from ringlog.history"
    found = connection.execute(query).fetchone()
    return None if found is None else (timedelta(seconds=found[0]), found[1])


def manifest(connection: psycopg.Connection, table: str | None = None) -> list[ColdWeek]:
    query = (
        f"select {_COLUMNS} from ringlog.cold_week where table_name = coalesce(%s, table_name)"
        " order by table_name, begins"
    )
    return [ColdWeek(*map(in_utc, row)) for row in connection.execute(query.encode(), [table])]


def new_file(connection: psycopg.Connection, folder: Folder, table: str, week: Week) -> str:
    """A new name for a week's file, recorded in the database. A file that replaces another has the next
    number: no name is used twice, also not one of another database."""
    first = f"{table}/{week.start:%Gw%V}"
    recorded = "select file from ringlog.cold_week union select file from ringlog.archive_file"
    numbered = re.compile(re.escape(first) + r"(?:-(\d+))?\.parquet")
    named = (numbered.fullmatch(file) for (file,) in connection.execute(recorded))
    used = [int(found[1] or 1) for found in named if found]
    for number in count(max(used, default=0) + 1):
        name = f"{first}{'' if number == 1 else f'-{number}'}.parquet"
        if not folder.exists(name) and not folder.exists(aside(name)):
            break
    connection.execute("insert into ringlog.archive_file (file) values (%s)", [name])
    return name


def note(connection: psycopg.Connection, week: ColdWeek) -> None:
    """Enters a week in the manifest, in place of its previous entry."""
    forget(connection, week)
    if week.rows and week.table not in archived_tables(connection):
        # the gateway must know that the log lacks rows
        announce(connection, "moved")
    row = [*vars(week).values()]
    connection.execute(f"insert into ringlog.cold_week ({_COLUMNS}) values (%s{', %s' * 8})".encode(), row)


def forget(connection: psycopg.Connection, week: ColdWeek) -> None:
    """Removes a week from the manifest; its file is kept for `keep_replaced`."""
    query = "delete from ringlog.cold_week where table_name = %s and begins = %s returning file"
    leave_manifest(connection, [file for (file,) in connection.execute(query, [week.table, week.begins])])


def write_manifest(connection: psycopg.Connection, folder: Folder) -> None:
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


def form_of_table(connection: psycopg.Connection, table: str) -> Rows:
    """The form of a table's files."""
    return SAMPLES if is_of_samples(connection, table) else ROWS


def about(connection: psycopg.Connection, table: str) -> dict[str, str]:
    """The table's description in a file's metadata. Samples have retired signals too."""
    query = (
        "select distinct on (column_name) column_name, signal, type, unit, signal.description"
        " from ringlog.signal join ringlog.every_table using (table_name)"
        " where table_name = %s and (valid_to is null or is_of_samples)"
        " order by column_name, valid_from desc"
    )
    signals = connection.cursor(row_factory=dict_row).execute(query, [table]).fetchall()
    return {"ringlog.table": table, "ringlog.signals": json.dumps(signals)}


def default_partition(table: str) -> sql.Identifier:
    """The partition in which rows of a cold week arrive."""
    return sql.Identifier("log", f"{table}_default")


def refill_default(connection: psycopg.Connection, table: str, rows: sql.Composable) -> None:
    """Fills the default partition of a log with the rows of this query, and no others.

    Snapshots taken before have them too, as they have the rows of a new file: TRUNCATE and COPY FREEZE are
    for all snapshots, DELETE and INSERT are not.
    """
    partition = default_partition(table)
    with TemporaryFile() as kept, connection.cursor() as cursor:
        with cursor.copy(sql.SQL("copy ({}) to stdout (format binary)").format(rows)) as copy:
            for data in copy:
                kept.write(data)
        cursor.execute(sql.SQL("truncate {}").format(partition))
        kept.seek(0)
        with cursor.copy(sql.SQL("copy {} from stdin (format binary, freeze)").format(partition)) as copy:
            while data := kept.read(_SPOOLED):
                copy.write(data)
