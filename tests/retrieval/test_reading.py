"""Reading from programs: `ringlog.clients.read`, `ringlog export`, `ringlog plot`."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from known_rows import ROWS, WAVEFORMS, row, time_of
from openpyxl import load_workbook
from scipy.io import loadmat
from typer.testing import CliRunner

from ringlog.cli import app
from ringlog.clients import ReadRefused, read
from ringlog.commands.signals.export import Wide, export
from ringlog.commands.signals.plot import _lines, _ticks
from servers import ringlog

BEGIN, END = datetime(2025, 12, 31, 23, 58, tzinfo=UTC), datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
DOUBLES = [row(number)["a_double"] for number in range(ROWS)]
PNG = b"\x89PNG\r\n\x1a\n"


def test_samples(web) -> None:
    table = read("every_type/a_double", BEGIN, END, server=web.url)
    assert table["time"].to_pylist() == [time_of(number) for number in range(ROWS)]
    assert table["value"].to_pylist() == DOUBLES
    frame = table.to_pandas()
    assert str(frame["time"].dtype) == "datetime64[us, UTC]"


def test_a_login_and_its_password(web) -> None:
    server = web.url.replace("://", f"://{web.server.reader.user}@")
    password = web.server.reader.password
    assert len(read("every_type/a_double", BEGIN, END, server=server, password=password)) == ROWS
    with pytest.raises(ReadRefused) as refusal:
        read("every_type/a_double", BEGIN, END, server=server, password="wrong")
    assert refusal.value.status == 401


def test_a_trend_of_several_signals(web) -> None:
    table = read(["every_type/a_double", "every_type/an_int"], BEGIN, END, points=10, server=web.url)
    assert set(table["signal"].to_pylist()) == {"every_type/a_double", "every_type/an_int"}
    assert sum(table["n"].to_pylist()) == 2 * sum(value is not None for value in DOUBLES)


def test_refusals_are_reported(web) -> None:
    with pytest.raises(ReadRefused, match="no such"):
        read("no such", BEGIN, END, server=web.url)
    with pytest.raises(ReadRefused, match="does not answer"):
        read("x", BEGIN, END, server="http://127.0.0.1:1")
    with pytest.raises(ValueError, match="zone"):
        read("x", BEGIN.replace(tzinfo=None), END, server=web.url)


def test_commands_name_the_next_step(web, tmp_path: Path) -> None:
    unknown = ringlog("export", "no such", "-o", tmp_path / "a.csv", "--server", web.url)
    assert (unknown.returncode, "there is no signal 'no such': ringlog signals WORDS" in unknown.stderr) == (
        *(1, True),
    ), unknown.stderr
    # also root cannot write there: the file is named that was asked for
    file = Path("/proc/a.csv")
    for kind in ("csv", "h5"):
        words = ("every_type/a_double", "-o", file.with_suffix(f".{kind}"), "--server", web.url)
        closed = ringlog("export", *words)
        assert closed.returncode == 1
        assert closed.stderr == f"ringlog: /proc/a.{kind}: No such file or directory\n"


@pytest.mark.parametrize("kind", ["csv", "parquet", "h5", "mat"])
def test_export(web, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"data.{kind}"
    words = ("every_type/a_double", "--from", BEGIN.isoformat(), "--to", END.isoformat(), "-o", file)
    ran = ringlog("export", *words, "--server", web.url)
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == [file]
    if kind == "csv":
        values = pyarrow.csv.read_csv(file)["value"].to_pylist()
    elif kind == "parquet":
        values = pq.read_table(file)["value"].to_pylist()
    elif kind == "h5":
        with h5py.File(file) as made:
            group = made["every_type|a_double"]
            assert group.attrs["signal"] == "every_type/a_double"
            assert group["time"][0] == time_of(0).timestamp()
            values = group["value"][:].tolist()
    else:
        values = loadmat(file)["signal_1"]["value"][0, 0].ravel().tolist()
    # HDF5 and MATLAB have NaN for a missing reading
    assert [None if value is None or value != value else value for value in values] == DOUBLES


@pytest.mark.parametrize(
    "words",
    [
        ("every_type/a_varchar",),
        ("every_type/a_double", "every_type/an_int", "--points", "30"),
        ("every_type/a_double", "every_type/a_varchar", "--wide", "last", "--step", "7s", "--comments"),
    ],
)
def test_csv_is_that_of_the_server(
    web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The same bytes, in a file named after the signal and the time."""
    monkeypatch.chdir(tmp_path)
    time = ("--from", BEGIN.isoformat(), "--to", END.isoformat())
    ran = CliRunner().invoke(app, ["export", *words, *time, "--server", web.url])
    assert ran.exit_code == 0, ran.output
    names = [word for word in words if word.startswith("every_type")]
    more = "" if len(names) == 1 else "_and_1_more"
    (file,) = tmp_path.iterdir()
    assert file.name == f"{names[0].replace('/', '_')}{more}_20251231T235800Z_20260101T003000Z.csv"
    asked: dict[str, Any] = {"signal": names, "from": BEGIN.isoformat(), "to": END.isoformat()}
    asked |= {"wide": "last", "step": "7s", "comments": "1"} if "--wide" in words else {}
    path = "data"
    if "--points" in words:
        path, asked = "trend", asked | {"points": 30}
    with web.client() as client:
        assert file.read_bytes() == client.get(f"/api/v1/{path}", params=asked | {"format": "csv"}).content


@pytest.mark.parametrize("kind", ["h5", "mat", "xlsx"])
def test_exports_have_units_and_mixed_types(web, tmp_path: Path, kind: str) -> None:
    names, file = (
        ["sr_mag_ps_b_1/current_adc", "every_type/a_double", "every_type/a_varchar"],
        tmp_path / f"a.{kind}",
    )
    for how in (None, Wide.LAST):
        export(names, file, BEGIN.isoformat(), END.isoformat(), None, how, server=web.url)
        texts = [row(number)["a_varchar"] or "" for number in range(ROWS)]
        if kind == "h5":
            with h5py.File(file) as made:
                assert made[names[0].replace("/", "|")].attrs["unit"] == "A"
                found = (
                    made["every_type|a_varchar" if how else "every_type|a_varchar/value"].asstr()[()].tolist()
                )
        elif kind == "mat":
            made = loadmat(file, simplify_cells=True)
            assert (made["signal_1"]["name"], made["signal_1"]["unit"]) == (names[0], "A")
            found = [text if isinstance(text, str) else "" for text in made["signal_3"]["value"]]
        else:
            book = load_workbook(file, read_only=True)
            assert [cell.value for cell in [*book["signals"].rows][1]][1:3] == [names[0], "A"]
            values = [[cell.value for cell in line] for line in book["values" if how else "signal 3"].rows]
            assert values[0] == (["time", *names] if how else ["time", "value"])
            assert abs(values[1][0].replace(tzinfo=UTC) - time_of(0)) < timedelta(milliseconds=1)
            # a sheet has no cells after the last one with a value
            found = [(line[len(values[0]) - 1 :] or [""])[0] or "" for line in values[1:]]
        assert found == texts


def test_a_plot_without_samples_reports_that(web, tmp_path: Path) -> None:
    words = ["plot", "every_type/a_double", "--from", "2001-01-01", "--to", "2001-01-02", "--server", web.url]
    ran = ringlog(*words, "-o", tmp_path / "plot.png")
    assert (ran.returncode, [*tmp_path.iterdir()]) == (1, [])
    assert "every_type/a_double: no samples from 2001-01-01 to 2001-01-02" in ran.stderr


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1.2e-8, 3e-8], ["1.2e-08", "1.5e-08", "1.8e-08", "2.1e-08", "2.4e-08", "2.7e-08", "3e-08"]),
        ([100.0001, 100.0007], [f"100.000{digit}" for digit in range(1, 8)]),
        ([5.0, 5.0], ["5"]),
    ],
)
def test_marks_of_a_plot_have_few_digits(values: list[float], labels: list[str]) -> None:
    assert _ticks(values)[1] == labels


def test_a_plotted_line_is_interrupted_at_gaps() -> None:
    times = [BEGIN + timedelta(seconds=second) for second in (0, 1, 2, 3, 60, 61, 62, 200)]
    parts = _lines(pa.table({"time": pa.array(times, pa.timestamp("us", "UTC"))}))
    assert [part.num_rows for part in parts] == [4, 3, 1]


@pytest.mark.usefixtures("waveforms")
@pytest.mark.parametrize("kind", ["csv", "parquet", "h5", "mat"])
def test_exports_of_other_types_than_numbers(web, tmp_path: Path, kind: str) -> None:
    """Bits, texts and waveforms, and their missing readings: NaN, an empty text, a waveform without
    points."""
    file = tmp_path / f"data.{kind}"

    def exported(signal: str, begin: datetime, end: datetime) -> list[Any]:
        export([signal], file, begin.isoformat(), end.isoformat(), server=web.url)
        if kind == "csv":
            with file.open(newline="") as text:
                return [line["value"] for line in csv.DictReader(text)]
        if kind == "parquet":
            return pq.read_table(file)["value"].to_pylist()
        if kind == "h5":
            with h5py.File(file) as made:
                return [*made[signal.replace("/", "|")]["value"][()]]
        return [*loadmat(file)["signal_1"]["value"][0, 0].ravel()]

    bits = exported("every_type/a_bit", BEGIN, END)
    read = {"csv": {"1": True, "0": False, "": None}, "parquet": {}}.get(kind)
    bits = [read.get(bit, bit) if read is not None else None if bit != bit else bit == 1 for bit in bits]
    assert bits == [row(number)["a_bit"] for number in range(ROWS)]
    texts = exported("every_type/a_varchar", BEGIN, END)
    if kind == "mat":
        texts = ["".join(text) for text in texts]
    texts = [text.decode() if isinstance(text, bytes) else text or "" for text in texts]
    written = [str(row(number)["a_varchar"] or "") for number in range(ROWS)]
    assert texts == written
    # all of them, and one alone
    points = [[0.5, -2.5, 4.0], [], [float(number % 7) for number in range(100)]]
    for n in (3, 1):
        end = WAVEFORMS + timedelta(seconds=n) if n < 3 else WAVEFORMS + timedelta(seconds=9)
        found = exported("bpm/turns", WAVEFORMS - timedelta(seconds=9), end)
        if kind == "csv":
            found = [json.loads(text) for text in found]
        assert [np.ravel(each).tolist() for each in found] == points[:n]


def test_an_export_that_fails_leaves_no_file(web, tmp_path: Path) -> None:
    ran = ringlog("export", "no such", "-o", tmp_path / "data.csv", "--server", web.url)
    assert ran.returncode == 1
    assert "no such" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_plots(web, tmp_path: Path) -> None:
    words = ("every_type/a_double", "--from", BEGIN.isoformat(), "--to", END.isoformat(), "--server", web.url)
    drawn = ringlog("plot", *words)
    assert drawn.returncode == 0, drawn.stderr
    assert "every_type/a_double" in drawn.stdout
    picture = ringlog("plot", *words, "-o", tmp_path / "plot.png")
    assert picture.returncode == 0, picture.stderr
    assert (tmp_path / "plot.png").read_bytes().startswith(PNG)


def test_an_address_that_is_no_server_is_quoted_without_its_password() -> None:
    refused = CliRunner().invoke(app, ["export", "x", "--server", "me:secret@127.0.0.1:8080"])
    assert "'127.0.0.1:8080' is not a server: write http://host:port" in str(
        refused.exception or refused.output
    )
