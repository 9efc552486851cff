"""The results of `soak`: figures over days, and whether one of them grows that should not."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ringlog.loader.schedule import SECOND
from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Figure, Line, Outcome, Plot, Section
from ringlog.loadtest.experiment.report import MISSING, amount
from ringlog.loadtest.experiment.server import Server
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog.schema.facility import Facility
from ringlog_lab.soak.drift import TOLERANCE, Drift, Verdict, drift
from ringlog_lab.soak.inside import tables_of
from ringlog_lab.soak.plan import DAY, ONLINE, PROCESSES, RETENTION, Run, chosen_tables, foreseen, mondays
from ringlog_lab.soak.watch import (
    EACH,
    EXPECTED,
    MEMORY,
    SERIES,
    Look,
    Samples,
    each_row,
    longest_start,
    series,
)
from ringlog_lab.stage import Stage

if TYPE_CHECKING:
    from ringlog.loadtest.spring8.recorded import Records
    from ringlog_lab.soak.found import Found

SOURCE = (
    "A. Yamashita et al. (SPring-8): RDBMS on Linux for Accelerator Control; it ran for fourteen days "
    "without deterioration"
)
_WARM = 0.25
"""The omitted first part of the run: caches fill, first plans are made, rings go round."""
_MEGABYTES = ("MB", 1e-6)
_UNITS = {
    "latency, median": ("ms", 1e3),
    "latency, 99 %": ("ms", 1e3),
    **dict.fromkeys([*MEMORY.values(), *SERIES.values(), *EXPECTED.values()], _MEGABYTES),
    **dict.fromkeys(EACH.values(), ("B", 1.0)),
    SERIES["dead"]: ("rows", 1.0),
    EACH["cpu"]: ("ms", 1e3),
    SERIES["fixed"]: ("ms", 1e3),
    **dict.fromkeys(
        [EXPECTED[name] for name in ("rows", "archived_rows", "partitions", "relations")], ("", 1.0)
    ),
}
"""Units of the figures in the tables, and the factors for them."""
_PERCENT = f"{100 * TOLERANCE:.0f} %"
_LENGTHS = (("years", 365.25), ("days", 1.0), ("h", 1 / 24), ("min", 1 / 1440))
_METHOD = [
    "Kept of the paper: all tables with all columns and their weeks, rings of their size, each table's order "
    "and pace, a connection for each table, durable commits. Thinned: the tables that are written, or their "
    "cycles, as said above. Omitted: the 60 readers. A process writes a third of the tables, one row after "
    "another, as fast as they are acknowledged; eight sets of readings come in turn.",
    "Rows carry simulated times, weeks before the machine's clock. During the load, summaries are made as of "
    "each simulated hour, and as of each midnight coming weeks, closed rows, archive "
    f"(weeks after {ONLINE.days} day), retention ({RETENTION.days} days for every tenth table). The server's "
    "own rounds continue by the machine's clock and take the simulated time as theirs. Autovacuum and "
    "checkpoints go by the machine's clock: there are far fewer for each row than in operation, so that dead "
    "rows wait longer, and pages are written to the write-ahead log less often.",
    f"The first {100 * _WARM:.0f} % are left out. Drift is the slope by Theil and Sen over the rest, with "
    "its confidence interval of 95 %, which is widened by the correlation of successive samples (Hamed and "
    "Rao); the change is that over the rest, as a part of the median. Figures of a row are those of half "
    "days, without those in which weeks went into the archive. Memory begins anew with each start: the "
    "longest stretch without one is judged.",
    "Where the machine's fixed piece of work changes as well, the machine has changed: a virtual one shares "
    "its cores.",
    f"`no deterioration`: the interval has 0 or less in it, and lies below {_PERCENT}. `{Verdict.SMALL}`: it "
    f"lies above 0 and below {_PERCENT}. `gets worse`: it lies above 0 and reaches beyond {_PERCENT}. "
    "Anything else is not decided: a longer run is needed.",
    "The last column extrapolates the upper end of the interval: the time of operation after which the "
    f"figure may be {_PERCENT} higher. The run does not exclude a deterioration that is slower than that, "
    "or one that follows real time and not rows.",
]


def outcome(stage: Stage, server: Server, facility: Facility, run: Run) -> Outcome:
    """The experiment's outcome; looks for every acknowledged row."""
    # late: numpy starts threads, which commands that fork must not have
    from ringlog.loadtest.spring8 import recorded
    from ringlog_lab.soak.found import look_for

    every = calls_of(run)
    written, looks = recorded.well(every), run.looks()
    found = look_for(server, facility, written)
    latencies = _latencies(written, looks, run.plan.begin)
    drifts = judged(looks, latencies)
    failed = len(every) - len(written)
    calls, end = recorded.calls(written), looks[-1]
    normal, fewer = foreseen(run.plan, facility)
    resumed = run.state.starts - 1
    times = {0: "was not resumed", 1: "was resumed once"}.get(resumed, f"was resumed {resumed} times")
    return stage.finish(
        "Fourteen days at the normal rate (papers/004)",
        SOURCE,
        f"{end.seconds / DAY:.3g} of {run.plan.days:g} days of the rows' time, in "
        f"{in_words(round(end.clock))} of load. {_thinned(run, facility)}: "
        f"{len(written):,} rows; in all its days the normal rate is {normal:,} rows, of "
        f"these tables {fewer:,}. The run {times}.",
        [counted("rows", found)],
        [
            Figure("rows", "rows acknowledged", "rows/s", len(written) / end.clock),
            Figure("failed", "calls that failed, and were repeated", "calls", float(failed)),
            Figure("resumed", "resumed", "times", float(resumed)),
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
        [
            _verdicts(drifts, _round(run, facility), end.seconds / DAY),
            _expected(server, facility, run, looks, found.past_retention, found.left_out),
            Section("Inside PostgreSQL", (), tables_of(run.insides(), DAY)),
            _pictures(drifts, looks, latencies),
        ],
        _METHOD,
    )


def calls_of(run: Run) -> "Records":
    """The records of all its calls."""
    from ringlog.loadtest.spring8 import recorded

    joined = run.folder / "joined"
    joined.write_bytes(b"".join(run.calls(process).read_bytes() for process in range(PROCESSES)))
    records = recorded.Recorded(joined)
    records.catch_up()
    joined.unlink()
    return records.all


def counted(what: str, found: "Found") -> Counted:
    return Counted(
        f"{what} in log and archive, and in the rings those of the last round",
        found.acknowledged - found.past_retention - found.left_out,
        found.found - (found.of_rings - found.in_rings),
        found.altered,
    )


def _thinned(run: Run, facility: Facility) -> str:
    tables, cycle = len(chosen_tables(run.plan, facility.tables)), run.plan.thin
    pace = "at its own cycle" if cycle == 1 else f"in one of {cycle:g} cycles"
    return f"{tables} of {len(facility.tables)} tables were written, each {pace}"


Drifts = Mapping[str, tuple[Samples, Drift]]


def _latencies(written: "Records", looks: Sequence[Look], begin: int) -> dict[str, Samples]:
    """Quantiles between two looks, in seconds."""
    import numpy as np

    written = written[np.argsort(written["begun"], kind="stable")]
    bounds = np.searchsorted((written["begun"] - begin) / SECOND, [one.seconds for one in looks])
    found: dict[str, list[tuple[float, float]]] = {"latency, median": [], "latency, 99 %": []}
    for (before, first), (after, last) in pairwise(zip(looks, bounds, strict=True)):
        some = written[first:last]["latency"] / SECOND
        if len(some):
            middle = (before.seconds + after.seconds) / 2
            for name, part in zip(found, (0.5, 0.99), strict=True):
                found[name].append((middle, float(np.quantile(some, part))))
    return dict(found)


def judged(looks: Sequence[Look], latencies: Mapping[str, Samples]) -> Drifts:
    """The figures that should stay, over days, each with its drift."""
    begin, end = looks[0].seconds, looks[-1].seconds
    warm = [one for one in looks if one.seconds >= begin + _WARM * (end - begin)]
    samples = {name: [one for one in each if one[0] >= warm[0].seconds] for name, each in latencies.items()}
    stretch = longest_start(warm)
    samples |= {title: [*series(stretch, name)] for name, title in MEMORY.items()}
    samples |= {title: [*series(warm, name)] for name, title in SERIES.items()}
    samples |= {title: [*each_row(warm, name)] for name, title in EACH.items()}
    found = {}
    for name, each in samples.items():
        days = [(second / DAY, value) for second, value in each]
        found[name] = days, drift(days)
    return found


def _round(run: Run, facility: Facility) -> float:
    """Days until every ring has gone round."""
    written = [facility.tables[index] for index in chosen_tables(run.plan, facility.tables)]
    return max(table.rows * table.cycle for table in written) * run.plan.thin / DAY


def _verdicts(drifts: Drifts, round_: float, days: float) -> Section:
    rows = []
    for name, (samples, one) in drifts.items():
        change, between = MISSING, MISSING
        if one.change is not None and one.least is not None and one.most is not None:
            change = f"{100 * one.change:+.3g} %"
            between = f"{100 * one.least:+.3g} to {100 * one.most:+.3g} %"
        rows.append([*_shown(name, samples, one), change, between, one.verdict, _earliest(one)])
    verdicts = [one.verdict for _, one in drifts.values()]
    text = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    worse = [name for name, (_, one) in drifts.items() if one.verdict is Verdict.WORSE]
    unknown = [name for name, (_, one) in drifts.items() if one.verdict is Verdict.UNDECIDED]
    is_short = round_ > _WARM * days
    sentences = [
        *(
            [f"The run is too short for a verdict: rings go round for the first time in {round_:.3g} days."]
            if is_short
            else []
        ),
        f"{'Rises so far' if is_short else 'Grows, and should not'}: {', '.join(worse)}."
        if worse
        else "Nothing is seen to grow that should not.",
        *([f"The run does not decide about: {', '.join(unknown)}."] if unknown else []),
        f"Of {len(verdicts)} figures: {text}.",
    ]
    later = f"{_PERCENT} at the earliest after"
    headings = [*_HEADINGS, "change", "with confidence", "verdict", later]
    return Section("Does anything grow that should not?", sentences, [TextTable("", headings, rows)])


_HEADINGS = ["", "unit", "first", "last", "a day", "with confidence"]


def _shown(name: str, samples: Samples, one: Drift) -> list[str]:
    """The cells of _HEADINGS."""
    unit, scale = _UNITS[name]
    ends = [amount(samples[index][1] * scale) for index in (0, -1)] if samples else [MISSING, MISSING]
    if one.slope is None:
        return [name, unit, *ends, MISSING, MISSING]
    slope, low, high = (each * scale for each in one.slope)
    return [name, unit, *ends, f"{slope:+.3g}", f"{low:+.3g} to {high:+.3g}"]


def _earliest(one: Drift) -> str:
    """In time of operation."""
    if one.earliest is None:
        return MISSING
    days = one.earliest
    unit, length = next((each for each in _LENGTHS if days >= each[1]), _LENGTHS[-1])
    return f"{amount(days / length)} {unit}"


def _expected(
    server: Server, facility: Facility, run: Run, looks: Sequence[Look], past: int, left_out: int
) -> Section:
    rows = []
    for name, title in EXPECTED.items():
        samples = [(second / DAY, value) for second, value in series(looks, name)]
        rows.append(_shown(title, samples, drift(samples)))
    end = looks[-1].seconds
    begun, left = mondays(run.plan, 0.0, end), mondays(run.plan, 0.0, max(0.0, end - DAY * ONLINE.days))
    due = looks[0].partitions + len(facility.tables) * (begun - left)
    query = "select count(*) from pg_class where relnamespace = 'log'::regnamespace and relkind = 'r'"
    (there,) = server.administrator.execute(query).fetchone() or (0,)
    weeks = server.administrator.execute(
        "select to_char(begins at time zone 'UTC', 'YYYY-MM-DD'), count(*), sum(rows), sum(bytes),"
        " sum(bytes) / nullif(sum(rows), 0)::float8 from ringlog.cold_week group by begins order by begins"
    ).fetchall()
    archived = [
        [
            day,
            str(tables),
            f"{int(count):,}",
            amount(int(size) * 1e-6),
            MISSING if each is None else amount(each),
        ]
        for day, tables, count, size, each in weeks
    ]
    return Section(
        "Growth that is expected",
        [
            f"{begun} weeks began and {left} went into the archive, of {len(facility.tables)} tables each: "
            f"{due} partitions are expected, {there} are there.",
            f"{past:,} acknowledged rows are past their table's retention and no more there; {left_out:,} "
            "are not logged by their table's policy.",
            "Files of the write-ahead log grow to max_wal_size or somewhat more, memory by shared_buffers.",
        ],
        [
            TextTable("From the first look to the last", _HEADINGS, rows),
            *(
                [TextTable("Archive", ["week from", "tables", "rows", "MB", "bytes a row"], archived)]
                if archived
                else []
            ),
        ],
    )


def _pictures(drifts: Drifts, looks: Sequence[Look], latencies: Mapping[str, Samples]) -> Section:
    def judged_line(name: str) -> Line:
        scale = _UNITS[name][1]
        return Line(name, [(day, value * scale) for day, value in drifts[name][0]])

    def line(title: str, samples: Samples) -> Line:
        scale = _UNITS[title][1]
        return Line(title, [(second / DAY, value * scale) for second, value in samples])

    def whole_line(name: str, title: str) -> Line:
        return line(title, series(looks, name))

    memory = [whole_line(name, (MEMORY | EXPECTED)[name]) for name in (*MEMORY, "postgres")]
    sizes = [whole_line(name, SERIES[name]) for name in ("rings", "ring_indexes", "catalogue")]
    rows = [judged_line(title) for name, title in EACH.items() if name != "cpu"]
    latency = [line(title, samples) for title, samples in latencies.items()]
    growth = [
        whole_line(name, EXPECTED[name])
        for name in ("logs", "log_indexes", "closed", "summaries", "archived_bytes", "own")
    ]
    return Section(
        "Over the days",
        (),
        (),
        [
            Plot("latency", "Time of a row between two looks.", "days", "ms", latency, False, True),
            Plot("memory", "Memory.", "days", "MB", memory, False, True),
            Plot("sizes", "Sizes that should stay.", "days", "MB", sizes, False, True),
            Plot("each", "Bytes of a row.", "days", "B", rows, False, True),
            Plot("growth", "Sizes that follow the rows and the weeks.", "days", "MB", growth),
        ],
    )
