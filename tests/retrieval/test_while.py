"""Readings of the times in which a condition of other signals holds, in each way of reading."""

import csv
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import h5py
import httpx
import numpy as np
import pytest
from known_rows import HELD, ROWS, row, time_of
from webs import Web

from ringlog.clients import ReadRefused, read
from servers import ringlog

START, END = time_of(0), time_of(ROWS)
NAME = "every_type/a_double"
CONDITION = "every_type/an_int >= -50000000 and every_type/an_int < 70000000 and not every_type/a_bit = 1"
SPAN = {"from": START.isoformat(), "to": END.isoformat()}


def holds(number: int) -> bool:
    """Whether the condition holds from a row to the next one."""
    whole, bit = row(number)["an_int"], row(number)["a_bit"]
    return isinstance(whole, int) and -50_000_000 <= whole < 70_000_000 and bit is False


CHOSEN = [number for number in range(ROWS) if holds(number)]
VALUES = np.array([row(number)["a_double"] for number in CHOSEN], float)


def test_samples(web: Web) -> None:
    table = read(NAME, START, END, while_=CONDITION, server=web.url)
    assert 20 < len(CHOSEN) < ROWS / 2
    assert table["time"].to_pylist() == [time_of(number) for number in CHOSEN]
    assert table["value"].to_pylist() == VALUES.tolist()
    assert len(read(NAME, START, END, while_="every_type/an_int > 2e9", server=web.url)) == 0


def test_columns(web: Web) -> None:
    names = [NAME, "every_type/a_varchar"]
    table = read(names, START, END, wide="last", while_=CONDITION, server=web.url)
    assert table["time"].to_pylist() == [time_of(number) for number in CHOSEN]
    assert table[names[1]].to_pylist() == [row(number)["a_varchar"] for number in CHOSEN]
    means = read(names[0], START, END, wide="mean", step=20, while_=CONDITION, server=web.url)
    for time, mean in zip(*(means[name].to_pylist() for name in ("time", NAME)), strict=True):
        inside = [
            row(each)["a_double"] for each in CHOSEN if time <= time_of(each) < time + timedelta(seconds=20)
        ]
        assert mean == (pytest.approx(np.mean(inside)) if inside else None)
    assert sum(mean is not None for mean in means[NAME].to_pylist()) == len(
        {time_of(each).timestamp() // 20 for each in CHOSEN}
    )


def test_a_value_is_held_for_the_gap(web: Web, held: None) -> None:
    end = HELD[-1][0] + timedelta(seconds=1)
    table = read("bpm/x_set", HELD[0][0], end, wide="last", step=1, gap=2, server=web.url)
    assert table["bpm/x_set"].to_pylist() == [1.5, 1.5, None, 3.0, 3.0, None, None, 2.0]


def test_no_line_is_longer_than_the_gap(web: Web) -> None:
    """The rows are 1 s apart."""
    for gap, is_line in (("1100ms", True), ("900ms", False)):
        table = read(NAME, START, time_of(5), wide="linear", step="500ms", gap=gap, server=web.url)
        found = zip(table["time"].to_pylist(), table[NAME].to_pylist(), strict=True)
        lines = [value is not None for time, value in found if time_of(0) < time < time_of(4)]
        assert lines == [is_line] * 8
    table = read(NAME, time_of(7), time_of(12), wide="linear", step="500ms", gap=10, server=web.url)
    assert table[NAME].to_pylist().count(None) > 3, "no line leads over a row without a reading"


@pytest.mark.parametrize("points", [10, 1000])
def test_a_trend(web: Web, points: int) -> None:
    """Of bins, and of few samples as they are."""
    trend = read(NAME, START, END, points=points, while_=CONDITION, server=web.url)
    n = np.array(trend["n"].to_pylist())
    assert (n.sum(), len(n) == len(CHOSEN)) == (len(CHOSEN), points == 1000)
    assert (min(trend["min"].to_pylist()), max(trend["max"].to_pylist())) == (VALUES.min(), VALUES.max())
    assert (np.array(trend["mean"].to_pylist()) * n).sum() == pytest.approx(VALUES.sum())


FIGURES = ["n", "min", "max", "mean", "std", "rms", "first", "last", "nans", "nulls", "seconds", "time_mean"]


def exported_figures(web: Web, folder: Path) -> list[dict[str, Any]]:
    file = folder / "figures.h5"
    words = ("export", NAME, "--from", START.isoformat(), "--to", END.isoformat(), "-o", file)
    chosen = ("--while", CONDITION, "--statistics", "--weighted", "--server", web.url)
    done = ringlog(*words, *chosen)
    assert done.returncode == 0, done.stderr
    with h5py.File(file) as made:
        (group,) = made.values()
        return [{"signal": group.attrs["signal"]} | {name: group[name][0] for name in FIGURES}]


def test_statistics(web: Web, anyone: httpx.Client, tmp_path: Path) -> None:
    asked = {"signal": NAME, "while": CONDITION, "weighted": "1"} | SPAN
    (found,) = anyone.get("/api/v1/statistics", params=asked).json()
    lengths = np.array([(time_of(each + 1) - time_of(each)).total_seconds() for each in CHOSEN])
    assert (found["n"], found["min"], found["max"]) == (len(CHOSEN), VALUES.min(), VALUES.max())
    assert (found["mean"], found["std"]) == (pytest.approx(VALUES.mean()), pytest.approx(VALUES.std()))
    assert found["seconds"] == pytest.approx(lengths.sum())
    assert found["time_mean"] == pytest.approx((VALUES * lengths).sum() / lengths.sum())
    for kept in (
        read(NAME, START, END, statistics=True, weighted=True, while_=CONDITION, server=web.url).to_pylist(),
        exported_figures(web, tmp_path),
    ):
        assert kept == [{name: found[name] for name in ("signal", *FIGURES)}]
    (whole,) = anyone.get("/api/v1/statistics", params={"signal": NAME} | SPAN).json()
    assert (whole["n"], whole["nulls"], whole["time_mean"]) == (ROWS * 9 // 10, ROWS // 10, None)
    (never,) = anyone.get("/api/v1/statistics", params=asked | {"while": "every_type/an_int > 2e9"}).json()
    assert (never["n"], never["mean"], never["seconds"], never["time_mean"]) == (0, None, None, None)


@pytest.mark.parametrize(
    "wrong", [{"statistics": True, "points": 10}, {"statistics": True, "wide": "last"}, {"weighted": True}]
)
def test_statistics_have_no_points(web: Web, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="statistics"):
        read(NAME, START, END, server=web.url, **wrong)


def test_a_histogram(web: Web, anyone: httpx.Client) -> None:
    found = anyone.get(
        "/api/v1/histogram", params={"signal": NAME, "while": CONDITION, "bins": 7} | SPAN
    ).json()
    counts, edges = np.histogram(VALUES, 7)
    assert found["edges"] == pytest.approx(edges)
    assert found["signals"][0]["counts"] == counts.tolist()


def test_an_export(web: Web, tmp_path: Path) -> None:
    file = tmp_path / "chosen.csv"
    words = (
        "--from",
        SPAN["from"],
        "--to",
        SPAN["to"],
        "-o",
        file,
        "--while",
        CONDITION,
        "--server",
        web.url,
    )
    ran = ringlog("export", NAME, *words)
    assert ran.returncode == 0, ran.stderr
    with file.open() as content:
        assert [float(line["value"]) for line in csv.DictReader(content)] == VALUES.tolist()


def test_procedures_over_tds(web: Web) -> None:
    asked = {"@while": CONDITION, "@from_time": str(START), "@to_time": str(END)}

    def rows_of(procedure: str, **others: object) -> list[tuple[Any, ...]]:
        given = asked | {f"@{name}": value for name, value in others.items()}
        with web.server.connect(web.server.reader.user, web.server.reader.password) as session:
            cursor = session.cursor()
            text = f"exec {procedure} {', '.join(f'{name} = %s' for name in given)}"
            cursor.execute(text, tuple(given.values()))
            return [tuple(row) for row in cursor]

    begins = [number for number in CHOSEN if number - 1 not in CHOSEN]
    assert [begin.replace(tzinfo=ZoneInfo("Asia/Tokyo")) for begin, _ in rows_of("get_spans")] == [
        time_of(each) for each in begins
    ]
    spans = rows_of("get_spans", gap=0.25)
    assert {ends - begins for begins, ends in spans} == {timedelta(seconds=0.25)}
    assert len(spans) == len(CHOSEN)
    (figures,) = rows_of("get_statistics_while", name=NAME)
    assert figures[:4] == (len(CHOSEN), VALUES.min(), VALUES.max(), pytest.approx(VALUES.mean()))
    trend = rows_of("get_trend_while", name=NAME, points=20)
    assert sum(each[1] for each in trend) == len(CHOSEN)
    shares = rows_of("get_distribution_while", name=NAME, percents="0,25,100")
    assert [each[1] for each in shares] == pytest.approx(np.percentile(VALUES, [0, 25, 100]))


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        (
            {"while": "every_type/an_int > "},
            400,
            "condition, character 21: a number, or a text in single quotes is expected",
        ),
        ({"while": "nobody = 1"}, 404, "condition, character 1: there is no signal 'nobody'"),
        ({"while": "every_type/a_varchar = 1"}, 400, "'every_type/a_varchar' is a text"),
        ({"gap": "10s"}, 400, "gap is for while="),
        ({"gap": "10s", "wide": "mean", "step": "1s", "format": "csv"}, 400, "gap is for while="),
        ({"while": "a\0b = 1"}, 400, "while must have no NUL"),
        ({"while": "every_type/an_int > 1", "gap": "soon"}, 400, "gap='soon' is not a time span"),
        ({"while": "every_type/an_int > 1", "limit": "3"}, 400, "limit cannot be used with while"),
    ],
)
def test_a_wrong_condition_is_refused(
    anyone: httpx.Client, asked: dict[str, str], status: int, words: str
) -> None:
    answer = anyone.get("/api/v1/data", params={"signal": NAME} | SPAN | asked)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_read_reports_a_refusal(web: Web) -> None:
    with pytest.raises(ReadRefused, match="character 1"):
        read(NAME, START, END, while_="nobody = 1", server=web.url)
