"""Reading from programs: `ringlog.clients.read`, `ringlog export`, `ringlog plot`."""

from datetime import UTC, datetime
from pathlib import Path

import h5py
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from known_rows import ROWS, row, time_of
from scipy.io import loadmat

from ringlog.clients import ReadRefused, read
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


def test_an_export_that_fails_leaves_no_file(web, tmp_path: Path) -> None:
    ran = ringlog("export", "no such", "-o", tmp_path / "data.csv", "--server", web.url)
    assert ran.returncode == 1
    assert "no such" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_plots(web, tmp_path: Path) -> None:
    words = ("every_type/a_double", "--from", BEGIN.isoformat(), "--to", END.isoformat(), "--server", web.url)
    drawn = ringlog("plot", *words)
    assert drawn.returncode == 0, drawn.stderr
    assert "every_type/a_double" in drawn.stdout
    picture = ringlog("plot", *words, "-o", tmp_path / "plot.png")
    assert picture.returncode == 0, picture.stderr
    assert (tmp_path / "plot.png").read_bytes().startswith(PNG)
