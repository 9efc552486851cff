"""The commands `ringlog export` and `ringlog plot`: samples and trends of signals, as files or pictures."""

import json
from collections.abc import Iterator
from datetime import UTC
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringlog.clients.reading import ReadRefused, read
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

# Rows and bytes of CSV made at once: an array of Arrow's texts has at most 2 GiB, and a byte of a waveform
# becomes up to six letters.
_ROWS = 1 << 16
_BYTES = 1 << 26


class Form(Enum):
    """Kinds of files, named as they end."""

    CSV = "csv"
    PARQUET = "parquet"
    HDF5 = "h5"
    MATLAB = "mat"


def export(
    signals: Names,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Ends in .csv, .parquet, .h5 or .mat.")
    ],
    start: Start = "now-1h",
    end: End = "now",
    points: Annotated[
        int | None,
        typer.Option(
            min=1,
            show_default=False,
            help=("Write a trend with this number of points. Default: all samples."),
        ),
    ] = None,
    server: Url = "http://127.0.0.1:8080",
) -> None:
    """Write samples or trends of signals to a file: CSV, Parquet, HDF5 or MATLAB."""
    try:
        form = Form(output.suffix.removeprefix("."))
    except ValueError:
        raise UsageError(f"{output}: the file must end in .csv, .parquet, .h5 or .mat") from None
    demand("pyarrow")
    if form in (Form.HDF5, Form.MATLAB):
        demand("h5py" if form is Form.HDF5 else "scipy", "numpy")
    table = _read(signals, start, end, points, server)
    unfinished = output.with_name(f".{output.name}.unfinished")
    {Form.CSV: _csv, Form.PARQUET: _parquet, Form.HDF5: _hdf5, Form.MATLAB: _matlab}[form](
        unfinished, table, signals
    )
    unfinished.rename(output)
    print(f"{output}: {table.num_rows} rows")


def plot(
    signals: Names,
    start: Start = "now-1h",
    end: End = "now",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.png", show_default="the terminal", help="A picture."),
    ] = None,
    server: Url = "http://127.0.0.1:8080",
) -> None:
    """Plot trends of signals on the terminal, or to a picture."""
    demand("pyarrow", "matplotlib" if output else "plotext")
    table = _read(signals, start, end, 1000, server)
    if output:
        _picture(table, signals, output)
    else:
        _terminal(table, signals)


def _read(signals: list[str], start: str, end: str, points: int | None, server: str) -> "pa.Table":
    try:
        return read(signals, start, end, points=points, server=server)
    except ReadRefused as error:
        raise ServerError(str(error)) from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _csv(file: Path, table: "pa.Table", _: list[str]) -> None:
    """Lines as Arrow's CSV has them, which takes twenty times as long for a time with a zone."""
    import pyarrow.compute as pc

    with file.open("wb") as made:
        made.write(",".join(f'"{name}"' for name in table.column_names).encode() + b"\n")
        for batch in _batches(table):
            *before, last = map(_texts, batch.columns)
            last = pc.binary_join_element_wise(last, "\n", "")
            lines = pc.binary_join_element_wise(*before, last, ",")
            _, bounds, letters = lines.buffers()
            made.write(memoryview(letters)[: memoryview(bounds).cast("i")[len(lines)]])


def _batches(table: "pa.Table") -> Iterator["pa.RecordBatch"]:
    waiting = table.to_batches(_ROWS)[::-1]
    while waiting:
        batch = waiting.pop()
        if batch.nbytes > _BYTES and len(batch) > 1:
            middle = len(batch) // 2
            waiting += [batch.slice(middle), batch.slice(0, middle)]
        else:
            yield batch


def _texts(column: "pa.Array") -> "pa.Array":
    """Values as CSV has them; without one nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(column.type):
        quoted = (None if text is None else '"' + text.replace('"', '""') + '"' for text in _json(column))
        texts = pa.array(quoted, pa.string())
    elif pa.types.is_string(column.type):
        texts = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    elif pa.types.is_timestamp(column.type):
        texts = pc.binary_join_element_wise(
            column.cast("int64").cast(pa.timestamp("us")).cast("string"), "Z", ""
        )
    else:
        texts = column.cast(pa.string())
    return texts.fill_null("")


def _json(waveforms: "pa.Array | pa.ChunkedArray") -> list[str | None]:
    return [None if points is None else json.dumps(points) for points in waveforms.to_pylist()]


def _parquet(file: Path, table: "pa.Table", _: list[str]) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, str(file), compression="zstd")


def _columns(table: "pa.Table") -> dict[str, Any]:
    """Columns as numpy has them: times as seconds since 1970, waveforms each as an array. Where there is no
    reading a number is NaN, a text or a waveform empty."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            columns[name] = column.cast("int64").to_numpy() / 1e6
        elif pa.types.is_string(column.type):
            columns[name] = _objects(["" if text is None else text for text in column.to_pylist()])
        elif pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
            columns[name] = _objects(["" if text is None else text for text in _json(column)])
        elif pa.types.is_list(column.type):
            columns[name] = _objects([points for chunk in column.chunks for points in _apart(chunk)])
        elif pa.types.is_boolean(column.type) and column.null_count:
            columns[name] = column.cast(pa.int8()).to_numpy()
        else:
            columns[name] = column.to_numpy()
    return columns


def _apart(waveforms: "pa.Array") -> Any:
    """The points of each waveform; none where there is none."""
    import numpy as np

    points = waveforms.flatten().to_numpy(zero_copy_only=False)
    lengths = waveforms.value_lengths().fill_null(0).to_numpy()
    return np.split(points, lengths.cumsum()[:-1]) if len(lengths) else []


def _objects(values: list[Any]) -> Any:
    import numpy as np

    made = np.empty(len(values), object)
    for place, value in enumerate(values):  # together those of one length would be taken for a matrix
        made[place] = value
    return made


def _parts(table: "pa.Table", signals: list[str]) -> dict[str, "pa.Table"]:
    """The rows of each signal."""
    import pyarrow.compute as pc

    if "signal" not in table.column_names:
        return {signals[0]: table}
    return {name: table.filter(pc.equal(table["signal"], name)).drop_columns(["signal"]) for name in signals}


def _hdf5(file: Path, table: "pa.Table", signals: list[str]) -> None:
    """A group for each signal, a data set for each column; `time` is in seconds since 1970, UTC."""
    import h5py

    with h5py.File(file, "w") as made:
        for name, part in _parts(table, signals).items():
            group = made.create_group(name.replace("/", "|"))
            group.attrs["signal"] = name
            for column, values in _columns(part).items():
                kind = None
                if values.dtype == object:
                    lists = len(values) and not isinstance(values[0], str)
                    kind = h5py.vlen_dtype(values[0].dtype) if lists else h5py.string_dtype()
                group.create_dataset(column, data=values, dtype=kind)


def _matlab(file: Path, table: "pa.Table", signals: list[str]) -> None:
    """A struct for each signal, signal_1 …, with its name and a vector for each column."""
    from scipy.io import savemat

    content = {
        f"signal_{number}": {"name": name} | _columns(part)
        for number, (name, part) in enumerate(_parts(table, signals).items(), 1)
    }
    with file.open("wb") as made:
        savemat(made, content, oned_as="column")


def _picture(table: "pa.Table", signals: list[str], output: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 2.6 * len(signals)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(signals), 1, sharex=True, squeeze=False)
    for row, (name, part) in enumerate(_parts(table, signals).items()):
        axis = axes[row][0]
        time = part["time"].to_pylist()
        axis.fill_between(time, part["min"].to_numpy(), part["max"].to_numpy(), alpha=0.25, linewidth=0)
        axis.plot(time, part["mean"].to_numpy(), linewidth=1)
        axis.set_title(name, loc="left", fontsize=10)
        axis.grid(visible=True, alpha=0.3)
    figure.savefig(output, dpi=110)
    print(output)


def _terminal(table: "pa.Table", signals: list[str]) -> None:
    import plotext

    plotext.clear_figure()
    plotext.date_form("Y-m-d H:M:S")
    for name, part in _parts(table, signals).items():
        times = [moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") for moment in part["time"].to_pylist()]
        means = part["mean"].to_pylist()
        kept = [(time, mean) for time, mean in zip(times, means, strict=True) if mean is not None]
        if kept:
            plotext.plot([time for time, _ in kept], [mean for _, mean in kept], label=name, marker="braille")
    plotext.plotsize(100, 24)
    plotext.show()
