"""Reading from programs: `ringlog.clients.read`, `ringlog export`, `ringlog plot`."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from known_rows import ROWS, WAVEFORMS, row, time_of
from scipy.io import loadmat

from ringlog.clients import ReadRefused, read
from ringlog.commands.export import export
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
    # HDF5 and MATLAB have NaN where there is no reading
    assert [None if value is None or value != value else value for value in values] == DOUBLES


@pytest.mark.parametrize(
    ("signals", "points"),
    [*((f"every_type/{column}", None) for column in row(0)), ("every_type/a_double,every_type/an_int", 30)],
)
def test_csv_is_as_arrow_writes_it(
    web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: str, points: int | None
) -> None:
    """By pyarrow's own writer: times, numbers, bits, texts; one signal and a trend of two; in many parts."""
    monkeypatch.setattr("ringlog.commands.export._BYTES", 500)
    expected, file = tmp_path / "expected.csv", tmp_path / "data.csv"
    names = signals.split(",")
    pyarrow.csv.write_csv(read(names, BEGIN, END, points=points, server=web.url), str(expected))
    export(names, file, BEGIN.isoformat(), END.isoformat(), points, web.url)
    assert file.read_bytes() == expected.read_bytes()


@pytest.mark.usefixtures("waveforms")
@pytest.mark.parametrize("kind", ["csv", "parquet", "h5", "mat"])
def test_exports_of_what_is_no_number(web, tmp_path: Path, kind: str) -> None:
    """Bits, texts and waveforms, and where there is no reading: NaN, an empty text, a waveform of no
    points."""
    file = tmp_path / f"data.{kind}"

    def exported(signal: str, begin: datetime, end: datetime) -> list[Any]:
        export([signal], file, begin.isoformat(), end.isoformat(), None, web.url)
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
    read = {"csv": {"true": True, "false": False, "": None}, "parquet": {}}.get(kind)
    bits = [read.get(bit, bit) if read is not None else None if bit != bit else bit == 1 for bit in bits]
    assert bits == [row(number)["a_bit"] for number in range(ROWS)]
    texts = exported("every_type/a_varchar", BEGIN, END)
    if kind == "mat":
        texts = ["".join(text) for text in texts]
    texts = [text.decode() if isinstance(text, bytes) else text or "" for text in texts]
    assert texts == [row(number)["a_varchar"] or "" for number in range(ROWS)]
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
