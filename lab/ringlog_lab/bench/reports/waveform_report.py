"""The tables of a report about waveforms."""

from collections.abc import Iterator
from itertools import product

from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.bench.reading import COPY
from ringlog_lab.bench.reports.results import Results, median
from ringlog_lab.bench.waveforms import BESIDE, POINT_BYTES, Waveforms
from ringlog_lab.native_load import DIRECT, GATEWAY, Measurement


def waveform_tables(results: Results, found: Waveforms) -> Iterator[TextTable]:
    (writers,) = {one.connections for one in results.measurements if one.part == "waveforms"}
    yield _written(results, writers, found.disk)
    yield _read(found)
    yield _small(writers, found)


def _written(results: Results, writers: int, disk: float) -> TextTable:
    rows = []
    for points in results.columns("waveforms"):
        for one in (DIRECT, *GATEWAY):
            of = results.of("waveforms", one.key, points)
            rows.append([f"{points:,} points, {one.title}", *_figures_of(of, points, disk)])
    return TextTable(
        f"Waveforms of doubles by {writers} writers; the disk takes {disk / 1e6:.0f} MB/s, each MiB durable",
        [
            "",
            "payload",
            "of the disk's",
            "PostgreSQL, a MB",
            "gateway, a MB",
            "client, a MB",
            "WAL ÷ payload",
            "p50",
            "p99",
            "others' cores",
        ],
        rows,
    )


def _figures_of(of: list[Measurement], points: int, disk: float) -> Iterator[str]:
    size = points * POINT_BYTES
    speed = median(one.rate * size for one in of)
    yield _megabytes(speed)
    yield _text(None if speed is None else speed / disk, 2)
    for who in ("backends", "gateway", "clients"):
        yield _milliseconds(median(one.each(getattr(one, who)) / size * 1e6 for one in of))
    yield _text(median(one.each(one.wal) / size for one in of), 2)
    for latency in ("p50", "p99"):
        yield _milliseconds(median(getattr(one, latency) for one in of))
    yield _text(median(one.others / one.seconds for one in of), 2)


def _read(found: Waveforms) -> TextTable:
    titles = {one.key: one.title for one in GATEWAY} | {COPY: "psycopg, binary COPY"}
    rows = []
    for points in sorted({one.columns for one in found.readings}):
        size = points * POINT_BYTES
        for key, title in titles.items():
            of = [one for one in found.readings if (one.contender, one.columns) == (key, points)]
            costs = (
                _milliseconds(median(getattr(one, who) / one.rows / size * 1e6 for one in of))
                for who in ("postgres", "gateway", "client")
            )
            speed = _megabytes(median(one.rate * size for one in of))
            rows.append([f"{points:,} points, {title}", speed, *costs])
    return TextTable(
        "Waveforms read back", ["", "payload", "PostgreSQL, a MB", "gateway, a MB", "client, a MB"], rows
    )


def _small(writers: int, found: Waveforms) -> TextTable:
    rows = []
    parts = {"alone": "alone", "beside": f"beside {writers} writers of 100,000 points"}
    for (part, description), one in product(parts.items(), BESIDE):
        of = [each for each in found.small if (each.part, each.contender) == (part, one.key)]
        latencies = (median(getattr(each, name) for each in of) for name in ("p50", "p99", "max"))
        rows.append([f"{one.title}, {description}", *map(_milliseconds, latencies)])
    return TextTable("Rows of 200 columns, 100 a second", ["", "p50", "p99", "longest"], rows)


def _megabytes(speed: float | None) -> str:
    return _text(None if speed is None else speed / 1e6, 1, " MB/s")


def _milliseconds(seconds: float | None) -> str:
    return _text(None if seconds is None else seconds * 1e3, 2, " ms")


def _text(figure: float | None, digits: int, unit: str = "") -> str:
    return "-" if figure is None else f"{figure:,.{digits}f}{unit}"
