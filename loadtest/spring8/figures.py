"""The plots of a report."""

from collections.abc import Callable, Iterator, Sequence

from ringlog.loadtest.experiment.outcome import Line, Plot
from ringlog.loadtest.spring8 import published
from ringlog.loadtest.spring8.format import KIND_NAMES, server_seconds
from ringlog.loadtest.spring8.results import KINDS, NATIVE, PYTHON, Run, Sample

_PARTS = {"postgres": "PostgreSQL", "gateway": "gateway", "clients": "clients", "others": "other processes"}
_COLUMNS = "data columns of a table"


def normal_operation(run: Run) -> Iterator[Plot]:
    """Figure 3: load average and CPU over time."""
    length, unit = _time_unit(run.seconds)
    load = [(sample.seconds / length, sample.load_average) for sample in run.samples]
    yield Plot(
        "figure-3",
        "Figure 3: load average at normal operation. The paper shows that of 120 minutes; its server had the "
        "machine to itself, ours shares it with the clients.",
        unit,
        "1-minute load average",
        [Line("load average", load)],
    )
    middles, shares = _shares(run)
    if middles:
        times = [middle / length for middle in middles]
        lines = [
            Line(_PARTS[part], [*zip(times, (100 * value for value in values), strict=True)])
            for part, values in shares.items()
            if values
        ]
        paper = 100 * published.CPU_SHARE
        lines.append(Line("the paper's server: below", [(times[0], paper), (times[-1], paper)], paper=True))
        yield Plot("figure-3-cpu", "CPU at normal operation.", unit, f"% of {run.cores} cores", lines)


def _time_unit(seconds: float) -> tuple[float, str]:
    if seconds <= 300:
        return 1.0, "seconds"
    if seconds <= 4 * 3600:
        return 60.0, "minutes"
    return (3600.0, "hours") if seconds <= 3 * 86_400 else (86_400.0, "days")


def _shares(run: Run) -> tuple[list[float], dict[str, list[float]]]:
    """The middles of the times between samples, and each part's share of the machine in them, 0 to 1. A part
    that cannot be measured is left empty; its use is in `others` then.
    """
    middles: list[float] = []
    shares: dict[str, list[float]] = {part: [] for part in _PARTS}
    known = [part for part in _PARTS if part != "others" and getattr(run.samples[0], part) is not None]
    for one, other in zip(run.samples, run.samples[1:], strict=False):
        lasted = (other.seconds - one.seconds) * run.cores
        if lasted < 0.2 * run.cores:
            # the last one comes soon after the one before, and the kernel counts CPU in steps
            continue
        middles.append((one.seconds + other.seconds) / 2)
        taken = {part: max(0.0, _between(one, other, part) / lasted) for part in known}
        busy = _between(one, other, "machine") / lasted
        for part, value in taken.items():
            shares[part].append(value)
        shares["others"].append(max(0.0, min(1.0, busy) - sum(taken.values())))
    return middles, shares


def _between(one: Sample, other: Sample, part: str) -> float:
    return float(getattr(other, part) - getattr(one, part))


def seconds(runs: Sequence[Run]) -> Iterator[Plot]:
    """Each second at the highest rate."""
    length, unit = _time_unit(max(run.seconds for run in runs))
    rates, longest = [], []
    for run in runs:
        whole = [*enumerate(run.by_second[: int(run.seconds)])]
        name = KIND_NAMES[run.clients]
        rates.append(Line(name, [((second + 0.5) / length, rows) for second, (rows, _) in whole]))
        longest.append(Line(name, [((second + 0.5) / length, 1000 * most) for second, (_, most) in whole]))
    yield Plot("highest-rate", "Each second at the highest rate.", unit, "rows acknowledged a second", rates)
    yield Plot(
        "highest-rate-longest",
        "The longest insertion of each second.",
        unit,
        "ms",
        longest,
        up_logarithmic=True,
    )


def tables(runs: Sequence[Run]) -> Plot:
    """Figure 4 from the run of table 1: each table's rate against its number of columns."""
    lines = [
        Line(KIND_NAMES[run.clients], [(table.columns, table.rows) for table in run.tables], joined=False)
        for run in runs
    ]
    return Plot(
        "figure-4-tables",
        "Figure 4 from the same load: a table's rows a second against its data columns, one writer a table. "
        "The paper's point is the inverse of its average insertion time.",
        _COLUMNS,
        "rows a second into one table",
        [*lines, _paper(200, 1 / published.TABLE_1[0].mean)],
        up_logarithmic=True,
    )


def columns(runs: Sequence[Run]) -> Iterator[Plot]:
    """Figure 4: rows a second of 60 writers against columns, the same in kilobytes, and, if it can be
    measured, the server's cost of a row, which depends least on other work of the machine."""
    linux, width = published.TABLE_1[0], published.MEAN_WIDTH
    yield Plot(
        "figure-4",
        "Figure 4: rows a second against data columns of a table. The paper's point is table 1's total rate, "
        "at the mean number of columns of its tables.",
        _COLUMNS,
        "rows a second, 60 writers",
        [*_by_kind(runs, lambda run: run.rows), _paper(width, published.rows_a_second(linux))],
        up_logarithmic=True,
    )
    yield Plot(
        "figure-4-kilobytes",
        "The same in KB a second.",
        _COLUMNS,
        "KB a second",
        [*_by_kind(runs, lambda run: run.kilobytes), _paper(width, linux.kilobytes)],
        up_logarithmic=True,
    )
    if costs := [*_by_kind(runs, lambda run: (cost := server_seconds(run)) and 1e6 * cost)]:
        yield Plot(
            "figure-4-cpu", "The server's CPU a row.", _COLUMNS, "µs of PostgreSQL and gateway a row", costs
        )


def _by_kind(runs: Sequence[Run], figure: Callable[[Run], float | None]) -> Iterator[Line]:
    """A figure against the number of columns, for each kind of clients that has it."""
    for kind in KINDS:
        points = [(run.columns, value) for run in runs if run.clients == kind and (value := figure(run))]
        if points:
            yield Line(KIND_NAMES[kind], points)


def _paper(columns: float, figure: float) -> Line:
    return Line("the paper, Linux", [(columns, figure)], paper=True)


def users(runs: Sequence[Run]) -> Iterator[Plot]:
    """Latencies, CPU and rates against the number of users."""
    titles = {PYTHON: "Python users at the normal rate", NATIVE: "Native writers at the highest rate"}
    for kind, title in titles.items():
        chosen = [run for run in runs if run.clients == kind]
        if not chosen:
            continue
        times = _known(
            chosen,
            {
                "writes, median": lambda run: run.writes.p50,
                "writes, 99 %": lambda run: run.writes.p99,
                "reads, median": lambda run: run.reads.p50 if run.reads else None,
                "reads, 99 %": lambda run: run.reads.p99 if run.reads else None,
            },
            1000,
        )
        yield _against_users(f"{kind}", f"{title}: times of calls.", "ms", times, up=True)
        if kind == PYTHON:
            shares = _known(
                chosen,
                {
                    "everything on the machine": lambda run: run.share("machine"),
                    "PostgreSQL": lambda run: run.share("postgres"),
                    "gateway": lambda run: run.share("gateway"),
                    "clients": lambda run: run.share("clients"),
                },
                100,
            )
            unit = f"% of {chosen[0].cores} cores"
            yield _against_users(f"{kind}-cpu", f"{title}: CPU.", unit, shares)
        else:
            rates = _known(chosen, {"rows": lambda run: run.rows}, 1)
            yield _against_users(f"{kind}-rows", f"{title}.", "rows a second", rates)


def _known(
    runs: Sequence[Run], figures: dict[str, Callable[[Run], float | None]], factor: float
) -> list[Line]:
    """Figures against the number of users, where they are known."""
    lines = []
    for label, figure in figures.items():
        points = [(run.users, factor * value) for run in runs if (value := figure(run)) is not None]
        if points:
            lines.append(Line(label, points))
    return lines


def _against_users(name: str, caption: str, unit: str, lines: list[Line], *, up: bool = False) -> Plot:
    return Plot(name, caption, "users logged in", unit, lines, across_logarithmic=True, up_logarithmic=up)
