"""The results of `soak`: figures over time, and whether one of them gets worse."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ringlog.loader.schedule import SECOND
from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Figure, Line, Outcome, Plot, Section
from ringlog.loadtest.experiment.report import MISSING, amount
from ringlog.loadtest.experiment.server import Server
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog.schema.facility import Facility
from ringlog_lab.soak.drift import TOLERANCE, Drift, Verdict, drift
from ringlog_lab.soak.watch import EACH, SERIES, Look, each_row, series
from ringlog_lab.stage import Stage

if TYPE_CHECKING:
    from ringlog.loadtest.spring8.recorded import Records

_SOURCE = (
    "A. Yamashita et al. (SPring-8): RDBMS on Linux for Accelerator Control; it ran for fourteen days "
    "without deterioration"
)
_WARM = 0.25
"""The omitted first part of the run: caches fill, first plans are made."""
_BYTES = {"gateway", "postgres", "rings", "ring_indexes"}
_UNITS = {
    "latency, median": ("ms", 1e3),
    "latency, 99 %": ("ms", 1e3),
    **{SERIES[name]: ("MB", 1e-6) for name in _BYTES},
    SERIES["dead"]: ("rows", 1.0),
    **{EACH[name]: ("B", 1.0) for name in ("logs", "log_indexes", "wal")},
    EACH["cpu"]: ("ms", 1e3),
}
"""Units of the figures in the table, and the factors for them."""
_PERCENT = f"{100 * TOLERANCE:.0f} %"
_LENGTHS = (("days", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_METHOD = [
    "Every table is written at its cycle, divided by the time scale, in one process for a third of the "
    "tables; rows carry times that pass as fast as the scale says. Every acknowledged row is looked for in "
    "ring and log, with its values.",
    f"The first {100 * _WARM:.0f} % of the run are left out. Drift is the slope by Theil and Sen over the "
    "rest, as a part of the median, with its confidence interval of 95 %, which is widened by the "
    "correlation of successive samples (Hamed and Rao).",
    f"`no deterioration`: the interval has 0 or less in it, and lies below {_PERCENT}. `{Verdict.SMALL}`: it "
    f"lies above 0 and below {_PERCENT}. `gets worse`: it lies above 0 and reaches beyond {_PERCENT}. "
    "Anything else is not decided: a longer run is needed.",
    "The last column extrapolates the upper end of the interval: the time of operation after which the "
    f"figure may be {_PERCENT} higher. The run does not exclude a deterioration that is slower than that.",
    "A short run shows what begins to fill, not what fourteen days do: rings that have not gone round once "
    "still grow, and autovacuum comes once a minute at most.",
]


def outcome(
    stage: Stage,
    server: Server,
    facility: Facility,
    files: Sequence[Path],
    looks: Sequence[Look],
    begin: int,
    speed: float,
) -> Outcome:
    """The experiment's outcome; looks for every acknowledged row."""
    # late: numpy starts threads, which commands that fork must not have
    import numpy as np

    from ringlog.loadtest.spring8 import recorded
    from ringlog.loadtest.spring8.python_run import check

    joined = stage.folder / "calls"
    joined.write_bytes(b"".join(file.read_bytes() for file in files))
    records = recorded.Recorded(joined)
    records.catch_up()
    found = check(server.administrator.info.dsn, facility, records)
    written = recorded.well(records.all)
    # in seconds of the run
    moments = np.sort((written["begun"] - begin) / SECOND / speed)
    rows = [int(np.searchsorted(moments, one.seconds)) for one in looks]
    drifts = _drifts(looks, rows, _latencies(written, looks, begin, speed))
    failed = len(records.all) - len(written)
    passed = in_words(round(stage.seconds * speed))
    sections = [_verdicts(drifts, speed), *_pictures(drifts)]
    counted = Counted(
        "rows of all tables", found.acknowledged, found.acknowledged - found.lost, found.altered
    )
    calls = recorded.calls(written)
    return stage.finish(
        "A long load at the normal rate (papers/004)",
        _SOURCE,
        f"The load lasted {in_words(round(stage.seconds, 2))} at {speed:g} times the normal rate: {passed} "
        "of operation instead of fourteen days.",
        [counted],
        [
            Figure("rows", "rows acknowledged", "rows/s", len(written) / stage.seconds),
            Figure("failed", "calls that failed", "calls", float(failed)),
            Figure("p50", "half of the rows written within", "s", calls.p50),
            Figure("p99", "99 % of the rows written within", "s", calls.p99),
            *(
                Figure(
                    f"drift {name}",
                    f"{name}: change",
                    "%",
                    None if one.change is None else 100 * one.change,
                    different=one.verdict,
                )
                for name, (_, one) in drifts.items()
            ),
        ],
        sections,
        _METHOD,
    )


Samples = Sequence[tuple[float, float]]


def _latencies(written: "Records", looks: Sequence[Look], begin: int, speed: float) -> dict[str, Samples]:
    """Quantiles between two looks, in seconds."""
    import numpy as np

    moments = (written["begun"] - begin) / SECOND / speed
    found: dict[str, list[tuple[float, float]]] = {"latency, median": [], "latency, 99 %": []}
    for before, after in pairwise(looks):
        some = written[(moments >= before.seconds) & (moments < after.seconds)]["latency"] / SECOND
        if len(some):
            middle = (before.seconds + after.seconds) / 2
            for name, part in zip(found, (0.5, 0.99), strict=True):
                found[name].append((middle, float(np.quantile(some, part))))
    return dict(found)


def _drifts(
    looks: Sequence[Look], rows: Sequence[int], latencies: dict[str, Samples]
) -> dict[str, tuple[Samples, Drift]]:
    samples: dict[str, Samples] = dict(latencies)
    samples |= {title: series(looks, name) for name, title in SERIES.items()}
    samples |= {title: each_row(looks, rows, name) for name, title in EACH.items()}
    from_then = _WARM * looks[-1].seconds
    return {
        name: (each, drift([one for one in each if one[0] >= from_then])) for name, each in samples.items()
    }


def _verdicts(drifts: dict[str, tuple[Samples, Drift]], speed: float) -> Section:
    rows = []
    for name, (samples, one) in drifts.items():
        unit, scale = _UNITS.get(name, ("", 1.0))
        shown = [amount(samples[place][1] * scale) for place in (0, -1)] if samples else [MISSING, MISSING]
        change = MISSING if one.change is None else f"{100 * one.change:+.3g} %"
        between = MISSING
        if one.least is not None and one.most is not None:
            between = f"{100 * one.least:+.3g} to {100 * one.most:+.3g} %"
        rows.append([name, unit, *shown, change, between, one.verdict, _earliest(one, speed)])
    verdicts = [one.verdict for _, one in drifts.values()]
    text = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    later = f"{_PERCENT} at the earliest after"
    headings = ["", "unit", "first", "last", "change", "with confidence", "verdict", later]
    return Section(
        "Does anything get worse?", [f"Of {len(verdicts)} figures: {text}."], [TextTable("", headings, rows)]
    )


def _earliest(one: Drift, speed: float) -> str:
    """In time of operation."""
    if one.earliest is None:
        return MISSING
    seconds = one.earliest * speed
    unit, length = next((each for each in _LENGTHS if seconds >= each[1]), _LENGTHS[-1])
    return f"{amount(seconds / length)} {unit}"


def _pictures(drifts: dict[str, tuple[Samples, Drift]]) -> list[Section]:
    def line(name: str, scale: float) -> Line:
        return Line(name, [(second, value * scale) for second, value in drifts[name][0]])

    memory = [line(SERIES[name], 1e-6) for name in SERIES if name in _BYTES]
    latency = [line(name, 1e3) for name in ("latency, median", "latency, 99 %")]
    return [
        Section(
            "Over time",
            (),
            (),
            [
                Plot("latency", "Time of a row between two looks.", "seconds", "ms", latency, False, True),
                Plot("sizes", "Memory, and size of the rings.", "seconds", "MB", memory, False, True),
            ],
        )
    ]
