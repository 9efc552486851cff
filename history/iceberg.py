"""The archive as Apache Iceberg tables: one for each log, whose data files are the archive's own.

The manifest (`ringlog.cold_week`) remains the truth: `publish` compares each table with it and makes one
snapshot of what differs. Tables, schemas and snapshots are files in the archive's folder, below `_iceberg`;
the catalogue, which says which of them is the newest, is pyiceberg's SqlCatalog in schema `iceberg` of the
database. Files have no field ids: the property `schema.name-mapping.default` of a table has them by name.

https://iceberg.apache.org/spec/
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ringlog.history import files
from ringlog.history.folder import Damaged, Folder
from ringlog.history.manifest import ColdWeek, manifest, settings
from ringlog.history.ownership import demand
from ringlog.schema import catalogue
from ringlog.schema.change import run
from ringlog.schema.column_type import ColumnType, Kind
from ringlog.schema.layout import ICEBERG, LOG_TABLES, OWNER, READER
from ringlog.schema.partitions import alone
from ringlog.schema.roles import become_owner

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction

CATALOG = "ringlog"
NAMESPACE = "log"
FOLDER = "_iceberg"
"""below the archive's; what begins with _ is no data to Spark"""

_KEPT = timedelta(days=1)
"""for which a file of an earlier snapshot stays: a query may have begun with it"""
_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}


class NotPublished(Exception):
    """A log cannot be an Iceberg table as it is, or nothing can."""


def publish(engine: sa.Engine, conninfo: str) -> Iterator[str]:
    """Brings the Iceberg tables in line with the manifest; yields a line for each change and for each log
    that cannot be one. Raises NotPublished without pyiceberg, and NotOurs."""
    with alone(engine):
        with engine.begin() as connection:
            chosen = settings(connection)
            if chosen is None:
                return
            folder = Folder(chosen[1])
            demand(connection, folder, dict(folder.names()), manifest(connection))
        yield from publish_tables(engine, conninfo)


def is_published(connection: sa.Connection) -> bool:
    """Whether there are Iceberg tables, which each round of archiving brings up to date."""
    return bool(connection.scalar(sa.select(sa.func.to_regclass(f"{ICEBERG}.iceberg_tables").is_not(None))))


def publish_tables(engine: sa.Engine, conninfo: str) -> Iterator[str]:
    """As `publish`, for a caller that already excludes others."""
    with engine.begin() as connection:
        chosen, known = settings(connection), manifest(connection)
        tables = {week.table for week in known if week.rows}
        columns = {
            table: catalogue.columns(connection, sql.Identifier(LOG_TABLES, table))
            for table in sorted(tables)
        }
    if chosen is None:
        return
    folder = Folder(chosen[1])
    known_tables = catalog(conninfo, chosen[1])
    try:
        known_tables.create_namespace_if_not_exists(NAMESPACE)
        with engine.begin() as connection:
            become_owner(connection)
            run(connection, f"grant select on all tables in schema {ICEBERG} to {READER}")
        for _, name in known_tables.list_tables(NAMESPACE):
            if name not in columns:
                known_tables.drop_table((NAMESPACE, name))
                yield f"log.{name} has no archived weeks any more: its Iceberg table is dropped"
        for table, types in columns.items():
            weeks = {
                address(chosen[1], week.file): week for week in known if week.table == table and week.rows
            }
            try:
                line = _published(known_tables, chosen[1], table, types, weeks)
            except (NotPublished, OSError, ValueError) as error:
                yield f"log.{table} is not published: {error}"
            else:
                if line:
                    yield line
        _tidy(folder, known_tables)
        folder.give(FOLDER)
    finally:
        known_tables.engine.dispose()


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
    uri = sa.URL.create("postgresql+psycopg", query=given)
    return SqlCatalog(
        CATALOG,
        uri=uri.render_as_string(hide_password=False),
        warehouse=address(archive, FOLDER),
        **{"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"},
        **object_store(archive),
    )


def address(archive: str, name: str) -> str:
    """The URL of a file of the archive's folder."""
    place = archive.split("?")[0].rstrip("/")
    return f"{'file://' if place.startswith('/') else ''}{place}/{name}"


def object_store(archive: str) -> dict[str, str]:
    """The options of a folder in an object store, by pyiceberg's names."""
    given = {name: values[-1] for name, values in parse_qs(urlsplit(archive).query).items()}
    options = {}
    if "endpoint_override" in given:
        options["s3.endpoint"] = f"{given.get('scheme', 'https')}://{given['endpoint_override']}"
    if "region" in given:
        options["s3.region"] = given["region"]
    return options


def _published(
    tables: "SqlCatalog", archive: str, table: str, types: Mapping[str, str], weeks: Mapping[str, ColdWeek]
) -> str:
    """Brings a table up to date, as one snapshot. Returns a line about the changes; empty without any."""
    schema = _schema(types)
    name = (NAMESPACE, table)
    there = _known(tables, table)
    if there is not None:
        _change_columns(there, schema)
    else:
        there = tables.create_table(
            name, schema, location=address(archive, f"{FOLDER}/{table}"), properties=_PROPERTIES
        )
    known = _files(there)
    new, gone = [url for url in weeks if url not in known], [url for url in known if url not in weeks]
    if not new and not gone:
        _expire(there)  # a round that was killed has not
        return ""
    with there.transaction() as transaction:
        _map_names(there, transaction)
        added = [*_added(there, transaction, archive, [weeks[url] for url in new])]
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


def _schema(types: Mapping[str, str]) -> pa.Schema:
    """The columns of a log, by PostgreSQL's types of them."""
    fields = []
    for name, kind in types.items():
        column = ColumnType.of_postgresql(kind)
        if column is None:
            raise NotPublished(f"no column has the type {kind}")
        # the files have numerics as texts
        fields.append(pa.field(name, pa.string() if column.kind is Kind.NUMERIC else column.arrow))
    return pa.schema(fields)


def _change_columns(table: "Table", schema: pa.Schema) -> None:
    """Gives a table the columns that its log has now. Raises NotPublished where a type became one that
    Iceberg does not widen to."""
    from pyiceberg.exceptions import ValidationError

    try:
        with table.update_schema() as update:
            update.union_by_name(schema)
            for field in table.schema().fields:
                if field.name not in schema.names:
                    update.delete_column(field.name)
    except (ValidationError, ValueError) as error:
        raise NotPublished(str(error)) from error


def _map_names(table: "Table", transaction: "Transaction") -> None:
    """Names the fields of files, which have no field ids."""
    names = table.schema().name_mapping.model_dump_json()
    if table.properties.get("schema.name-mapping.default") != names:
        transaction.set_properties({"schema.name-mapping.default": names})


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


def _added(
    table: "Table", transaction: "Transaction", archive: str, weeks: Collection[ColdWeek]
) -> "Iterator[DataFile]":
    """Raises NotPublished for a file that is damaged or does not fit the table."""
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    folder = Folder(archive)
    for week in weeks:
        url = address(archive, week.file)
        try:
            if week.footer not in (None, files.footer(folder, week.file)):
                raise NotPublished(f"{url}: its footer is not what was written")
            yield parquet_file_to_data_file(table.io, transaction.table_metadata, url)
        except (ValueError, OSError) as error:
            raise NotPublished(f"{url}: {error}") from error
        except Damaged as error:
            raise NotPublished(str(error)) from error


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
        if file.startswith(f"{FOLDER}/") and written < before and address(folder.where, file) not in used:
            folder.delete(file)
