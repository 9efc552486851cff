"""The commands `ringlog capture list` and `ringlog capture export`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringlog.clients.reading import opened, table_of
from ringlog.commands.signals.export import Url, columns_of, objects, put_column, reported, unfinished
from ringlog.errors import ServerError, UsageError
from ringlog.extras import demand

if TYPE_CHECKING:
    import pyarrow as pa

capture_app = typer.Typer(no_args_is_help=True, help="List captures, and write one to a file.")

_PATH = "captures"
_LOCAL = "http://127.0.0.1:8080"


@capture_app.command("list")
def list_captures(server: Url = _LOCAL) -> None:
    """List the captures and their tables."""
    with reported():
        for event in _captures(server):
            print(f"{event['capture']}  {event['time']}  {event['name']}  {event['note']}".rstrip())
            for table in event["tables"]:
                found = f"   {table['table_name']}: {table['rows']} rows, {table['state']}"
                notes = [f"{name}: {table[name]}" for name in ("lost", "trouble") if table[name]]
                print("; ".join([found, *notes]))


@capture_app.command("export")
def export_capture(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Number of the capture.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Ends in .h5 or, for one table, .parquet.")
    ],
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", show_default="all", help="Only this table.")
    ] = None,
    server: Url = _LOCAL,
) -> None:
    """Write the rows of a capture to one file: HDF5 with a group for each table, or Parquet."""
    if output.suffix not in (".h5", ".parquet"):
        raise UsageError(f"{output}: the file must end in .h5 or .parquet")
    demand("pyarrow", *(("h5py",) if output.suffix == ".h5" else ()))
    with reported():
        event = next((each for each in _captures(server) if each["capture"] == number), None)
        if event is None:
            raise ServerError(f"there is no capture {number} that you may read")
        names = [each["table_name"] for each in event["tables"] if table in (None, each["table_name"])]
        if not names:
            raise ServerError(f"capture {number} has no table {table} that you may read")
        if output.suffix == ".parquet" and len(names) > 1:
            raise UsageError(f"a Parquet file has one table: choose --table, of {', '.join(names)}")
        tables = {}
        for name in names:
            with opened(f"{_PATH}/{number}/{name}", [("format", "arrow")], server, None) as answer:
                tables[name] = table_of(answer)
        with unfinished(output) as made:
            (_parquet if output.suffix == ".parquet" else _hdf5)(made, event, tables)
    print(f"{output}: {output.stat().st_size} bytes")


def _captures(server: str) -> list[dict[str, Any]]:
    with opened(_PATH, [], server, None) as answer:
        return list(json.load(answer))


def _parquet(file: Path, event: dict[str, Any], tables: dict[str, "pa.Table"]) -> None:
    import pyarrow.parquet as pq

    (table,) = tables.values()
    pq.write_table(table.replace_schema_metadata({"ringlog": json.dumps(event)}), file, compression="zstd")


def _hdf5(file: Path, event: dict[str, Any], tables: dict[str, "pa.Table"]) -> None:
    """A group for each table with a data set for each column. `time` is in seconds since 1970, UTC, to the
    microsecond; the attributes of the file are those of the event."""
    import h5py

    with h5py.File(file, "w") as made:
        for name in ("capture", "name", "time", "begins", "ends", "note", "login"):
            made.attrs[name] = event[name]
        made.attrs["tables"] = json.dumps(event["tables"])
        for name, table in tables.items():
            group = made.create_group(name)
            columns = columns_of(table)
            if "signal" in table.column_names:
                columns["signal"] = objects(table["signal"].to_pylist())
            for column, values in columns.items():
                put_column(group, column, values)
