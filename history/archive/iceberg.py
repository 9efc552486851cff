"""The archive as Apache Iceberg tables: one for each log, whose data files are the archive's own.

The manifest (`ringlog.cold_week`) remains the truth: `publish` compares each table with it and makes one
snapshot of the differences. Tables, schemas and snapshots are files in the archive's folder, below
`_iceberg`; the catalogue, which names the newest ones, is pyiceberg's SqlCatalog in schema `iceberg` of the
database. A table has all fields that files of its log have or had (`archive.fields`); the property
`schema.name-mapping.default` has those of files of earlier versions, which have no field ids.

https://iceberg.apache.org/spec/
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg.conninfo import conninfo_to_dict

from ringlog.history.archive.addresses import METADATA, NAMESPACE, address, object_store
from ringlog.history.archive.folder import Damaged, Folder
from ringlog.history.archive.manifest import ColdWeek, manifest, settings
from ringlog.history.archive.ownership import demand
from ringlog.history.archive.parquet import files
from ringlog.history.archive.parquet.fields import Fields, field_id, of_log, reads, stored_as
from ringlog.schema import catalogue
from ringlog.schema.access.roles import become_owner
from ringlog.schema.change import run
from ringlog.schema.layout import ICEBERG, LOG, OWNER, READER, TABLE_READER
from ringlog.schema.relations.partitions import alone
from ringlog.schema.session import connect

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableUpdate

CATALOG = "ringlog"

_KEPT = timedelta(days=1)
"""for which a file of an earlier snapshot stays: a query may have begun with it"""
_NAMES = "schema.name-mapping.default"
_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}


class NotPublished(Exception):
    """A log cannot be an Iceberg table as it is, or nothing can."""


def publish(conninfo: str) -> Iterator[str]:
    """Brings the Iceberg tables in line with the manifest; yields a line for each change and for each log
    that cannot be one. Raises NotPublished without pyiceberg, and NotOurs."""
    with alone(conninfo):
        with connect(conninfo) as connection:
            chosen = settings(connection)
            if chosen is None:
                return
            folder = Folder(chosen[1])
            demand(connection, folder, dict(folder.names()), manifest(connection))
        yield from publish_tables(conninfo)


def is_published(connection: psycopg.Connection) -> bool:
    """Whether there are Iceberg tables, which each round of archiving brings up to date."""
    return catalogue.exists(connection, ICEBERG, "iceberg_tables")


def publish_tables(conninfo: str) -> Iterator[str]:
    """As `publish`, for a caller that already excludes others."""
    with connect(conninfo) as connection:
        chosen, known = settings(connection), manifest(connection)
        tables = sorted({week.table for week in known if week.rows})
    if chosen is None:
        return
    folder = Folder(chosen[1])
    known_tables = catalog(conninfo, chosen[1])
    try:
        known_tables.create_namespace_if_not_exists(NAMESPACE)
        with connect(conninfo) as connection:
            become_owner(connection)
            _permit(connection)
        for _, name in known_tables.list_tables(NAMESPACE):
            if name not in tables:
                known_tables.drop_table((NAMESPACE, name))
                yield f"log.{name} has no archived weeks any more: its Iceberg table is dropped"
        for table in tables:
            weeks = {
                address(chosen[1], week.file): week for week in known if week.table == table and week.rows
            }
            try:
                line = _published(conninfo, known_tables, chosen[1], table, weeks)
            except (NotPublished, OSError, ValueError) as error:
                yield f"log.{table} is not published: {error}"
            else:
                if line:
                    yield line
        _tidy(folder, known_tables)
        folder.give(METADATA)
    finally:
        known_tables.engine.dispose()


def _permit(connection: psycopg.Connection) -> None:
    """Lets readers see the tables of the logs that they may read."""
    run(connection, f"grant select on all tables in schema {ICEBERG} to {READER}, {TABLE_READER}")
    has_policy = "select from pg_policy where polname = 'readers' and polrelid = to_regclass(%s)"
    if not connection.execute(has_policy, [f"{ICEBERG}.iceberg_tables"]).rowcount:
        run(connection, f"alter table {ICEBERG}.iceberg_tables enable row level security")
        run(
            connection,
            f"create policy readers on {ICEBERG}.iceberg_tables for select"
            f" using (has_table_privilege(to_regclass(format('{LOG}.%I', table_name)), 'select'))",
        )


def catalog(conninfo: str, archive: str) -> "SqlCatalog":
    """The catalogue of an archive. `archive`: its folder, as in the facility file."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog
    except ImportError as error:
        why = f"Iceberg tables need the extra iceberg: pip install 'ringlog[iceberg]' ({error})"
        raise NotPublished(why) from None
    # it logs each file system that it loads
    logging.getLogger("pyiceberg").setLevel(logging.WARNING)
    given = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    given["options"] = f"{given.get('options', '')} -c search_path={ICEBERG} -c role={OWNER}".strip()
    return SqlCatalog(
        CATALOG,
        uri=f"postgresql+psycopg://?{urlencode(given)}",
        warehouse=address(archive, METADATA),
        **{"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"},
        **object_store(archive),
    )


def _published(
    conninfo: str, tables: "SqlCatalog", archive: str, table: str, weeks: Mapping[str, ColdWeek]
) -> str:
    """Brings a table up to date, as one snapshot. Returns a line about the changes; empty without any."""
    from pyiceberg.schema import Schema

    there = _known(tables, table)
    known = {} if there is None else _files(there)
    new = {url: week for url, week in weeks.items() if url not in known}
    with connect(conninfo) as connection:
        if not of_log(connection, table):
            raise NotPublished("it has a column of a type that no log has")
        fields = Fields(connection, table)
        for url, week in new.items():
            _demand(fields, Folder(archive), week, url)
    if there is not None and not _is_of(there, fields):
        tables.drop_table((NAMESPACE, table))
        return _published(conninfo, tables, archive, table, weeks)
    if there is None:
        there = tables.create_table(
            (NAMESPACE, table), Schema(), address(archive, f"{METADATA}/{table}"), properties=_PROPERTIES
        )
    there = _changed(tables, there, fields)
    gone = [url for url in known if url not in weeks]
    if not new and not gone:
        _expire(there)  # a round that was killed has not
        return ""
    with there.transaction() as transaction:
        added = [*_added(there, new)]
        with transaction.update_snapshot().overwrite() as snapshot:
            for file in added:
                snapshot.append_data_file(file)
            for url in gone:
                snapshot.delete_data_file(known[url])
    _expire(there)
    rows = sum(week.rows for week in weeks.values())
    return f"published log.{table}: {len(new)} weeks more, {len(gone)} fewer; {len(weeks)} with {rows} rows"


def _known(tables: "SqlCatalog", table: str) -> "Table | None":
    """A table of the catalogue. One whose metadata are gone, as after a restore of the database, is not."""
    from pyiceberg.exceptions import NoSuchTableError

    name = (NAMESPACE, table)
    try:
        there = tables.load_table(name)
        _files(there)
    except NoSuchTableError:
        return None
    except FileNotFoundError:
        tables.drop_table(name)
        return None
    return there


def _demand(fields: Fields, folder: Folder, week: ColdWeek, url: str) -> None:
    """Finds the fields of a file. Raises NotPublished for one that is damaged or has a column of another
    type than its field."""
    try:
        if week.footer != files.footer(folder, week.file):
            raise NotPublished(f"{url}: its footer differs from the one written")
        with folder.opened(week.file) as stream:
            columns = pq.read_schema(stream)
    except (ValueError, OSError) as error:
        raise NotPublished(f"{url}: {error}") from error
    except Damaged as error:
        raise NotPublished(str(error)) from error
    for column in columns:
        number = field_id(column)
        field = fields.by_name(column.name, column.type) if number is None else fields.get(number)
        if field is None or not reads(stored_as(field.type), column.type):
            raise NotPublished(
                f"{url}: column {column.name} is {column.type}, and another type in other weeks without field"
                f" ids: recall the week, and it gets them when it is archived again"
            )


def _schema(fields: Iterable[pa.Field]) -> "Schema":
    from pyiceberg.io.pyarrow import pyarrow_to_schema

    return pyarrow_to_schema(pa.schema(fields))


def _is_of(table: "Table", fields: Fields) -> bool:
    """Whether the ids of a table are those of these fields; tables of earlier versions have others."""
    known = {field.id: field for field in fields}
    return all(
        field.field_id in known and known[field.field_id].name == field.name
        for field in table.schema().fields
    )


def _changed(tables: "SqlCatalog", table: "Table", fields: Fields) -> "Table":
    """Gives a table these fields, and their names in files without ids."""
    from pyiceberg.schema import Schema
    from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate, SetPropertiesUpdate

    schema = _schema(field.arrow(field.name) for field in fields)
    updates: list[TableUpdate] = []
    if schema.as_struct() != table.schema().as_struct():
        number = 1 + max(each.schema_id for each in table.schemas().values())
        updates += [
            AddSchemaUpdate(schema=Schema(*schema.fields, schema_id=number)),
            SetCurrentSchemaUpdate.model_validate({"schema-id": number}),
        ]
    by_name = [field.arrow(field.column) for field in fields if field.is_by_name]
    names = _schema(by_name).name_mapping.model_dump_json()
    if by_name and table.properties.get(_NAMES) != names:
        updates.append(SetPropertiesUpdate(updates={_NAMES: names}))
    if updates:
        tables.commit_table(table, (), tuple(updates))
        table.refresh()
    return table


def _files(table: "Table") -> "dict[str, DataFile]":
    """The data files of the newest snapshot, by their addresses."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return {}
    return {
        entry.data_file.file_path: entry.data_file
        for manifest_file in snapshot.manifests(table.io)
        for entry in manifest_file.fetch_manifest_entry(table.io, discard_deleted=True)
    }


def _added(table: "Table", weeks: Mapping[str, ColdWeek]) -> "Iterator[DataFile]":
    """The entries of files. Raises NotPublished."""
    from pyiceberg.io import pyarrow as reading
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    known: pa.Schema | None = None
    for url in weeks:
        file = table.io.new_input(url)
        try:
            with file.open() as stream:
                metadata = pq.read_metadata(stream)
        except (ValueError, OSError) as error:
            raise NotPublished(f"{url}: {error}") from error
        columns = metadata.schema.to_arrow_schema()
        if known is None or not columns.equals(known, check_metadata=True):
            # most files of a table have the same columns
            known, schema = columns, reading.pyarrow_to_schema(columns, table.name_mapping())
            plan = reading.compute_statistics_plan(schema, table.properties)
            ids = reading.parquet_path_to_id_mapping(schema)
        statistics = reading.data_file_statistics_from_parquet_metadata(metadata, plan, ids)
        yield DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=url,
            file_format=FileFormat.PARQUET,
            partition=statistics.partition(table.spec(), table.schema()),
            file_size_in_bytes=len(file),
            spec_id=table.spec().spec_id,
            **statistics.to_serialized_dict(),
        )


def _expire(table: "Table") -> None:
    """Removes all snapshots but the newest: files that left the manifest are no longer where these look."""
    current = table.current_snapshot()
    others = [one.snapshot_id for one in table.snapshots() if current and one != current]
    if others:
        table.maintenance.expire_snapshots().by_ids(others).commit()


def _tidy(folder: Folder, tables: "SqlCatalog") -> None:
    """Deletes files of snapshots that are no more, some time after they were written."""
    before = (datetime.now(UTC) - _KEPT).timestamp()
    used: set[str] = set()
    for name in tables.list_tables(NAMESPACE):
        table = tables.load_table(name)
        used.add(table.metadata_location)
        used |= {entry.metadata_file for entry in table.metadata.metadata_log}
        for snapshot in table.snapshots():
            used.add(snapshot.manifest_list)
            used |= {each.manifest_path for each in snapshot.manifests(table.io)}
    for file, written in [*folder.names()]:
        if file.startswith(f"{METADATA}/") and written < before and address(folder.where, file) not in used:
            folder.delete(file)
