"""The command `ringlog export`: samples, trends and figures of signals as files."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringlog.clients.reading import opened, request_of, table_of
from ringlog.errors import ServerError, UsageError
from ringlog.extras import demand

if TYPE_CHECKING:
    import pyarrow as pa

Names = Annotated[list[str], typer.Argument(metavar="SIGNAL…", help="Names of signals.")]
Start = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="TIME",
        help=("Start of the time range (inclusive), as 2026-11-20T14:00 (UTC), …T15:00+01:00 or now-7d."),
    ),
]
End = Annotated[str, typer.Option("--to", metavar="TIME", help="End of the time range (exclusive).")]
Url = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="RINGLOG_HTTP",
        help="http://host:port of `ringlog serve --http`, or https://user@host:port; the password in"
        " $RINGLOG_PASSWORD.",
    ),
]
_MOST_XLSX = 1_048_576  # rows of a sheet, with the heading


class Form(Enum):
    """Kinds of files, named as they end."""

    CSV = "csv"
    PARQUET = "parquet"
    HDF5 = "h5"
    MATLAB = "mat"
    XLSX = "xlsx"


class Wide(Enum):
    """How signals are aligned."""

    LAST = "last"
    MEAN = "mean"
    LINEAR = "linear"


Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        show_default="a name of the signal and the time",
        help="Ends in .csv, .parquet, .h5, .mat or .xlsx; or a folder.",
    ),
]
Points = Annotated[
    int | None,
    typer.Option(
        min=1,
        show_default=False,
        help=("Write a trend with this number of points. Default: all samples."),
    ),
]
Aligned = Annotated[
    Wide | None,
    typer.Option(
        show_default=False,
        help="A column for each signal: its last value, the mean of a step, or the line between samples.",
    ),
]
Step = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        show_default="the times of all samples",
        help="Rows of --wide at the multiples of this: 0.5, 10s, 5m, 1h.",
    ),
]
While = Annotated[
    str | None,
    typer.Option(
        "--while",
        metavar="CONDITION",
        show_default=False,
        help="Only times in which this holds, as: \"SR:CURRENT > 10 and SR:MODE = 'user'\".",
    ),
]
Gap = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        show_default="to the next one",
        help="The longest time for which a value is held, as 10s, for --while and --wide.",
    ),
]
Statistics = Annotated[
    bool, typer.Option("--statistics", help="Write a row of figures for each signal: n, min, max, mean …")
]
Weighted = Annotated[
    bool, typer.Option("--weighted", help="With --statistics: the mean weighted by duration, too.")
]
Files = Annotated[
    Form | None, typer.Option("--format", show_default="as FILE ends, else csv", help="The kind of file.")
]
Comments = Annotated[
    bool, typer.Option("--comments", help="Begin CSV with lines of units, descriptions and the zone.")
]

_NEEDED = {
    Form.HDF5: ("pyarrow", "h5py"),
    Form.MATLAB: ("pyarrow", "scipy"),
    Form.XLSX: ("pyarrow", "openpyxl"),
}


def export(
    signals: Names,
    output: Output = None,
    start: Start = "now-1h",
    end: End = "now",
    points: Points = None,
    wide: Aligned = None,
    step: Step = None,
    condition: While = None,
    gap: Gap = None,
    statistics: Statistics = False,
    weighted: Weighted = False,
    form: Files = None,
    comments: Comments = False,
    server: Url = "http://127.0.0.1:8080",
) -> None:
    """Write samples or trends of signals to a file: CSV, Parquet, HDF5, MATLAB or Excel."""
    kind = form or _form_of(output)
    if comments and kind is not Form.CSV:
        raise UsageError("--comments is for CSV: the other kinds of files always have units and descriptions")
    demand(*_NEEDED.get(kind, ()))
    how = None if wide is None else wide.value

    def request(names: list[str], form: str) -> tuple[str, list[tuple[str, str]]]:
        return request_of(names, start, end, form, points, how, step, condition, gap, statistics, weighted)

    with reported():
        if kind in (Form.CSV, Form.PARQUET):
            path, query = request(signals, kind.value)
            query += [("download", "")] + ([("comments", "")] if comments else [])
            with opened(path, query, server, None) as answer:
                file = _file(output, _name_in(answer), kind)
                with unfinished(file) as made, made.open("wb") as content:
                    shutil.copyfileobj(answer, content, 1 << 20)
        else:
            tables: dict[str, pa.Table] = {}
            # separately: their types may differ
            for together in [signals] if how else [[name] for name in signals]:
                path, query = request(together, "arrow")
                with opened(path, [*query, ("download", "")], server, None) as answer:
                    name = _name_in(answer)
                    tables[together[0]] = table_of(answer)
                    if not output or output.is_dir():
                        output = (output or Path()) / f"{name}.{kind.value}"
            file = _file(output, "", kind)
            with unfinished(file) as made:
                _WRITERS[kind](made, tables, how is not None)
    print(f"{file}: {file.stat().st_size} bytes")


def _form_of(output: Path | None) -> Form:
    if output is None or output.is_dir():
        return Form.CSV
    try:
        return Form(output.suffix.removeprefix("."))
    except ValueError:
        message = f"{output}: the file must end in .csv, .parquet, .h5, .mat or .xlsx, or give --format"
        raise UsageError(message) from None


def _name_in(answer: Any) -> str:
    """The name of the file in the server's answer, without its suffix."""
    found = re.search(r'filename="([\w.-]+)\.\w+"', answer.headers["Content-Disposition"] or "")
    return found[1] if found else "data"


def _file(output: Path | None, name: str, kind: Form) -> Path:
    if output is None or output.is_dir():
        return (output or Path()) / f"{name}.{kind.value}"
    return output


@contextmanager
def unfinished(file: Path) -> Iterator[Path]:
    """A temporary file, which is renamed when it is complete."""
    made = file.with_name(f".{file.name}.unfinished")
    try:
        made.touch()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
    try:
        yield made
        made.rename(file)
    finally:
        made.unlink(missing_ok=True)


@contextmanager
def reported() -> Iterator[None]:
    from http.client import HTTPException

    try:
        yield
    except HTTPException as error:
        raise ServerError(f"the connection was lost during the answer: {error!r}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def notes_of(table: "pa.Table") -> dict[str, dict[str, Any]]:
    """Unit, description and more of each signal of a table."""
    return {each["signal"]: each for each in _all_notes(table)["signals"]}


def _all_notes(table: "pa.Table") -> dict[str, Any]:
    return dict(json.loads(table.schema.metadata[b"ringlog"]))


def _json(waveforms: "pa.Array | pa.ChunkedArray") -> list[str | None]:
    return [None if points is None else json.dumps(points) for points in waveforms.to_pylist()]


def columns_of(table: "pa.Table") -> dict[str, Any]:
    """Columns as numpy arrays: times as seconds since 1970, each waveform an array. A missing number is NaN,
    a missing text or waveform is empty."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        if name == "signal":
            continue
        if pa.types.is_timestamp(column.type):
            columns[name] = column.cast("int64").to_numpy() / 1e6
        elif pa.types.is_string(column.type):
            columns[name] = objects(["" if text is None else text for text in column.to_pylist()])
        elif pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
            columns[name] = objects(["" if text is None else text for text in _json(column)])
        elif pa.types.is_list(column.type):
            columns[name] = objects([points for chunk in column.chunks for points in _split(chunk)])
        elif pa.types.is_boolean(column.type) and column.null_count:
            columns[name] = column.cast(pa.int8()).to_numpy()
        else:
            columns[name] = column.to_numpy()
    return columns


def _split(waveforms: "pa.Array") -> Any:
    """The points of each waveform; empty for null."""
    import numpy as np

    points = waveforms.flatten().to_numpy(zero_copy_only=False)
    lengths = waveforms.value_lengths().fill_null(0).to_numpy()
    return np.split(points, lengths.cumsum()[:-1]) if len(lengths) else []


def objects(values: list[Any]) -> Any:
    import numpy as np

    array = np.empty(len(values), object)
    for index, value in enumerate(values):  # numpy makes a matrix of waveforms of equal length
        array[index] = value
    return array


def _hdf5(file: Path, tables: dict[str, "pa.Table"], wide: bool) -> None:
    """A group for each signal with a data set for each column; with `wide` a data set for each signal. `time`
    is in seconds since 1970, UTC. Unit and description are attributes. A group `marks` has the notes of
    people in this time, if there are any. Raises ValueError for a signal `marks` beside them, with `wide`."""
    import h5py

    with h5py.File(file, "w") as made:
        for name, table in tables.items():
            notes = notes_of(table)
            group = made if wide else made.create_group(name.replace("/", "|"))
            group.attrs["timezone"] = _all_notes(table)["timezone"]
            if not wide:
                _described(group, notes[name])
            for column, values in columns_of(table).items():
                written = put_column(group, column.replace("/", "|"), values)
                if column == "time":
                    written.attrs["unit"] = "s since 1970-01-01T00:00:00Z"
                elif wide:
                    _described(written, notes[column])
            if marks := _all_notes(table)["marks"]:
                _put_marks(group.create_group("marks"), marks)


def _put_marks(group: Any, marks: list[dict[str, Any]]) -> None:
    """Times are in seconds since 1970, UTC; `until` of a moment is NaN. `signals` has a line each."""
    import numpy as np

    for name in ("time", "until"):
        times = [each[name] and datetime.fromisoformat(each[name]).timestamp() for each in marks]
        put_column(group, name, np.array(times, float))
    texts = [each | {"signals": "\n".join(each["signals"] or [])} for each in marks]
    for name in ("text", "login", "signals"):
        put_column(group, name, objects([each[name] for each in texts]))


def put_column(group: Any, name: str, values: Any) -> Any:
    """Adds a column of `columns_of` to a group of an HDF5 file, and returns its data set."""
    import h5py

    kind = None
    if values.dtype == object:
        lists = len(values) and not isinstance(values[0], str)
        kind = h5py.vlen_dtype(values[0].dtype) if lists else h5py.string_dtype()
    return group.create_dataset(name, data=values, dtype=kind)


def _described(target: Any, notes: dict[str, Any]) -> None:
    for name in ("signal", "unit", "description"):
        target.attrs[name] = notes[name]
    target.attrs["states"] = _states(notes)


def _states(notes: dict[str, Any]) -> str:
    return ", ".join(f"{number} = {name}" for number, name in (notes.get("states") or {}).items())


def _matlab(file: Path, tables: dict[str, "pa.Table"], wide: bool) -> None:
    """A struct for each signal, signal_1 …, with its name, unit, description and a vector for each column;
    with `wide` one `time` for all. `time` is in seconds since 1970, UTC."""
    from scipy.io import savemat

    content: dict[str, Any] = {}
    for number, (name, table) in enumerate(tables.items(), 1):
        columns = columns_of(table)
        content["timezone"] = _all_notes(table)["timezone"]
        if wide:
            content["time"] = columns.pop("time")
        parts = {each: {"value": values} for each, values in columns.items()} if wide else {name: columns}
        for index, (each, vectors) in enumerate(parts.items(), number):
            notes = notes_of(table)[each]
            about = {name: notes[name] for name in ("unit", "description")}
            about |= {"name": each, "states": _states(notes)}
            content[f"signal_{index}"] = about | vectors
    with file.open("wb") as opened:
        savemat(opened, content, oned_as="column")


def _xlsx(file: Path, tables: dict[str, "pa.Table"], wide: bool) -> None:
    """A sheet for each signal, with `wide` one for all; and a sheet with units and descriptions. Times are
    UTC, to the millisecond, Excel's precision."""
    from openpyxl import Workbook

    longest = max(table.num_rows for table in tables.values())
    if longest >= _MOST_XLSX:
        raise UsageError(
            f"{longest} rows are more than the {_MOST_XLSX - 1} of a sheet: use --points, --wide or csv"
        )
    made = Workbook(write_only=True)
    about = made.create_sheet("signals")
    about.append(["sheet", "signal", "unit", "description", "states", "time"])
    for number, table in enumerate(tables.values(), 1):
        title = "values" if wide else f"signal {number}"
        for notes in notes_of(table).values():
            zone = f"UTC (the facility is in {_all_notes(table)['timezone']})"
            texts = [notes["unit"], notes["description"], _states(notes)]
            about.append([title, notes["signal"], *texts, zone])
        sheet = made.create_sheet(title)
        sheet.append([each for each in table.column_names if each != "signal"])
        columns = [_cells(table[each], sheet) for each in table.column_names if each != "signal"]
        for row in zip(*columns, strict=True):
            sheet.append(row)
    made.active = 1
    made.save(file)


def _cells(column: "pa.ChunkedArray", sheet: Any) -> Iterator[Any]:
    """Values that Excel can store: no zone, no waveforms, no infinite numbers, no control characters."""
    import pyarrow as pa
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    waveforms = pa.types.is_list(column.type)
    for value in _json(column) if waveforms else column.to_pylist():
        if isinstance(value, datetime):
            yield value.replace(tzinfo=None)
        elif isinstance(value, str):
            text = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", value)
            if text.startswith("="):
                # not a formula
                cell = WriteOnlyCell(sheet, text)
                cell.data_type = "s"
                yield cell
            else:
                yield text
        else:
            yield str(value) if isinstance(value, float) and not isfinite(value) else value


_WRITERS = {Form.HDF5: _hdf5, Form.MATLAB: _matlab, Form.XLSX: _xlsx}
