"""The outcomes of SPring-8's experiments: the tables and figures of papers/004, and ours."""

from collections.abc import Iterator, Sequence

from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Outcome, Section
from ringlog.loadtest.experiment.report import verdict
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog.loadtest.spring8 import published, sections
from ringlog.loadtest.spring8.beside import figures_of
from ringlog.loadtest.spring8.format import duration, kind, number, others, percent, seconds
from ringlog.loadtest.spring8.results import KINDS, Result, Run

_TITLES = {
    "normal": "Normal operation (section 6.1)",
    "max": "The highest rate (section 6.2)",
    "columns": "Columns of a table (figure 4)",
    "users": "Number of users",
}
_SECTIONS = {
    "normal": sections.normal,
    "max": sections.highest,
    "columns": sections.columns,
    "users": sections.users,
}

_METHOD = (
    "A row counts as acknowledged when the client has its answer, which comes after PostgreSQL's commit, "
    "with fsync, synchronous_commit and full_page_writes on. At the end of each load every acknowledged row "
    "is looked for by seq_no and time: the ring must have it or a later one in its place, the log must have "
    "it (unless its table's policy leaves it out), and stored values are compared with those sent. Writers "
    "in C keep no list of rows: rows are counted, each ring must have the latest row of the log, and values "
    "are compared, all of ct-library writers, a sample of native ones.",
    "Each row goes to ring and log in one transaction; the paper had no log in this test.",
    "Unless a server was named, server and clients share one machine; the paper had a loading machine. So "
    "clients take CPU that the server could use.",
    "Python users are locust's, each with a connection of its own by pymssql (TDS 7.4), in a few processes. "
    "While one waits for its answer the others of its process go on (pymssql's wait callback and gevent). "
    "Fewer calls outstanding than users means that users waited for their own processor, not for the server. "
    "Times include the client's own work and its waiting for the processor.",
    "ct-library writers are clients/ctlib/writer.c, a legacy DAQ process: as in the paper one process writes "
    "one table, with ct-library at TDS 5.0. Native writers send ct-library's requests, recorded once, again "
    "with another seq_no, time and set of values: they cost next to nothing, and leave the machine to the "
    "server. Each has one call outstanding at all times: their mean time is connections times seconds over "
    "calls.",
    "The paper prints its figures 3 and 4 as pictures, without numbers: beside ours stand the figures that "
    "its text and table 1 state.",
    "KB/s count 4 bytes a value, as the paper does, and 1,000 bytes a KB. CPU is from /proc at each sample. "
    "The load average is the kernel's of 1 minute: it lags, and counts every process of the machine.",
)


def outcome_of(result: Result) -> Outcome:
    """The outcome of an experiment, for the report of all."""
    runs = result.runs
    last = runs[-1].samples[-1].load_average if runs and runs[-1].samples else 0.0
    descriptions = dict.fromkeys(run.description for run in runs)
    files = [file for run in runs for file in run.files]
    return Outcome(
        experiment=result.experiment,
        title=_TITLES[result.experiment],
        paper=published.SOURCE,
        command=result.command,
        began=result.began,
        seconds=sum(run.seconds for run in runs),
        scale=f"{result.facility}.",
        machine=result.machine,
        load_before=runs[0].load_before if runs else 0.0,
        load_after=last,
        versions=result.versions | {"clients": "; ".join(descriptions), "raw figures": ", ".join(files)},
        settings=result.settings,
        counted=[*counted(result)],
        figures=[*figures_of(result)],
        sections=[
            Section("Rows", [_conditions(result)], [_checks(result)]),
            *_SECTIONS[result.experiment](runs),
            *sections.troubles(runs),
        ],
        method=[*(_METHOD if result.experiment == "normal" else _METHOD[:1])],
        short=[*_SHORT[result.experiment](runs), *_disturbed(result)],
    )


def summary(result: Result) -> list[str]:
    """The outcome of an experiment, for the terminal."""
    lines = [
        f"{run.description}: {number(run.rows)} rows/s, {run.kilobytes:,.1f} KB/s, mean "
        f"{duration(run.writes.mean)}, longest {duration(run.writes.longest)}; server "
        f"{percent(run.server_share)}, clients {percent(run.share('clients'))} of the machine"
        for run in result.runs
    ]
    return [*lines, verdict([*counted(result)]).text]


def counted(result: Result) -> Iterator[Counted]:
    """The acknowledged rows of its loads, and those that were found."""
    for run in result.runs:
        check = run.check
        what = f"{kind(run)}, {run.columns:.0f} columns"
        yield Counted(what, check.acknowledged, check.acknowledged - check.lost, check.altered)


def _checks(result: Result) -> TextTable:
    rows = []
    for clients in KINDS:
        runs = [run for run in result.runs if run.clients == clients]
        if runs:
            loads = f", {len(runs)} loads" if len(runs) > 1 else ""
            counts = (sum(getattr(run.check, what) for run in runs) for what in _COUNTS)
            rows.append([f"{kind(runs[0])}{loads}", *map(number, counts)])
    return TextTable(
        "Rows, looked for in rings and logs at the end of each load", ["", *_COUNTS.values()], rows
    )


_COUNTS = {
    "acknowledged": "acknowledged",
    "in_rings": "in rings",
    "in_logs": "in logs",
    "left_out": "left out by log policies",
    "altered": "altered",
    "lost": "lost",
}


def _disturbed(result: Result) -> Iterator[str]:
    shares = [share for run in result.runs if (share := others(run) or 0.0) > sections.DISTURBED]
    if shares:
        yield (
            f"Other processes of the machine took up to {percent(max(shares))} of it during "
            f"{result.experiment}: on a quiet machine rates are higher and times shorter. Ratios hold better "
            "than absolute figures."
        )


def _normal_in_short(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        server = run.server_share
        cpu = "" if server is None else f" and took {percent(server)} of {run.cores} cores"
        yield (
            f"Normal operation: {run.users} users wrote {run.kilobytes:.1f} KB/s; a row was stored in "
            f"{duration(run.writes.p50)} (median), {duration(run.writes.longest)} at worst. PostgreSQL and "
            f"gateway handled it{cpu}. The paper: 6.4 KB/s, less than 30 % of its one CPU."
        )


def _highest_in_short(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        yield (
            f"Highest rate, {kind(run)}: {number(run.kilobytes)} KB/s, {seconds(run.wide.mean)} s on average "
            f"for a row of 200 columns, {seconds(run.writes.longest)} s at worst. The paper, Linux: 186 "
            "KB/s, 0.2 s, 5.6 s."
        )


def _columns_in_short(runs: Sequence[Run]) -> Iterator[str]:
    for clients in KINDS:
        chosen = [run for run in runs if run.clients == clients]
        if len(chosen) > 1:
            narrow, wide = chosen[0], chosen[-1]
            yield (
                f"From {narrow.columns:.0f} to {wide.columns:.0f} columns, {kind(wide)}: "
                f"{number(narrow.rows)} to {number(wide.rows)} rows/s, {number(narrow.kilobytes)} to "
                f"{number(wide.kilobytes)} KB/s."
            )


def _users_in_short(runs: Sequence[Run]) -> Iterator[str]:
    yield sections.bend(runs)


_SHORT = {
    "normal": _normal_in_short,
    "max": _highest_in_short,
    "columns": _columns_in_short,
    "users": _users_in_short,
}


def _conditions(result: Result) -> str:
    if not result.runs:
        return "It ended before its first load."
    return f"Each load lasted {in_words(round(result.runs[0].seconds, 1))}."
