"""The sections of the report: one for each experiment."""

from collections.abc import Iterator, Sequence

from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Section
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog.loadtest.spring8 import figures, published
from ringlog.loadtest.spring8.format import (
    KIND_NAMES,
    MISSING,
    duration,
    kind,
    number,
    others,
    percent,
    processor_time,
    seconds,
)
from ringlog.loadtest.spring8.results import KINDS, NATIVE, PYTHON, Calls, Run

# The bend of a curve: fewer than this fraction of the requested rows are acknowledged, or 1 % waits longer
# than the shortest cycle.
_ANSWERED, _SHORTEST_CYCLE = 0.9, 1.0
# More of the machine than this taken by processes of others makes figures of speed doubtful.
DISTURBED = 0.10
# Native writers that are faster than Python users by this show that the latter measure themselves.
_FASTER = 1.25


def normal(runs: Sequence[Run]) -> Iterator[Section]:
    """Figure 3, the CPU and the disk I/O of section 6.1."""
    for run in runs:
        parts = (
            ("PostgreSQL", run.share("postgres")),
            ("gateway", run.share("gateway")),
            ("server: both together", run.server_share),
            ("clients", run.share("clients")),
            ("other processes of the machine", others(run)),
        )
        cpu = TextTable(
            "CPU at normal operation",
            ["", f"of the {run.cores} cores", "of one core"],
            [[name, percent(share), percent(share and share * run.cores)] for name, share in parts]
            + [["the paper: server, of its one CPU", MISSING, "< 30 %"]],
        )
        calls = times("Times of calls at normal operation", [run])
        yield Section("Load and CPU", tables=[cpu, calls], plots=[*figures.normal_operation(run)])
        yield _disk(run)


def _disk(run: Run) -> Section:
    last = run.closing or run.samples[-1]
    rows = [["the paper, sp_sysmon, 3 minutes", MISSING, MISSING, percent(published.LOG_SHARE)]]
    for name, log, data, scale, unit in (
        ("ringlog, operations", last.wal_operations, last.table_operations, 1.0, ""),
        ("ringlog, bytes", last.wal_bytes, last.table_bytes, 1e6, " MB"),
    ):
        if log is not None and data is not None and log + data:
            cells = [f"{one / scale:,.{1 if unit else 0}f}{unit}" for one in (log, data)]
            rows.append([name, *cells, percent(log / (log + data))])
    if len(rows) == 1:
        return Section("Disk I/O", ["Disk I/O is not known: PostgreSQL counts it since version 18."])
    checkpoints = "with a checkpoint before and one after it" if run.closing else "without a checkpoint"
    text = (
        f"From pg_stat_io over {in_words(round(run.seconds, 1))}, {checkpoints}. A page that changes many "
        "times between two checkpoints (15 minutes by default) is written to its table once, while each "
        "change goes to the write-ahead log: the longer the load, the larger the log's share. The paper "
        "updated rings only; here every row is appended to a log table as well."
    )
    table = TextTable("Disk I/O", ["", "write-ahead log", "tables", "share of the log"], rows)
    return Section("Disk I/O", [text], [table])


def highest(runs: Sequence[Run]) -> Iterator[Section]:
    """Table 1 of section 6.2, and what limits the rate."""
    remarks = [
        *(f"{one.name}: {one.machine}." for one in published.TABLE_1),
        f"(**) Not in the paper: its KB/s over {published.MEAN_WIDTH:.1f} data columns of 4 bytes.",
        "Python users write the facility as it is; writers in C as many tables of the same widths, all "
        "columns real.",
    ]
    yield Section("Table 1", remarks, [_table_1(runs)])
    cpu = TextTable(
        "Use of the CPU",
        [
            *("", "PostgreSQL", "gateway", "clients", "other processes"),
            *("server, a row", "clients, a row", "calls outstanding"),
        ],
        [
            [
                kind(run),
                *(percent(run.share(part)) for part in ("postgres", "gateway", "clients")),
                percent(others(run)),
                processor_time(run, run.server_share),
                processor_time(run, run.share("clients")),
                _outstanding(run),
            ]
            for run in runs
        ],
    )
    each_second = figures.seconds(runs) if any(len(run.by_second) > 1 for run in runs) else ()
    yield Section(
        "The limit",
        [*bottleneck(runs)],
        [cpu, times("Times of calls at the highest rate", runs)],
        [*each_second, figures.tables(runs)],
    )


def _outstanding(run: Run) -> str:
    """How many calls waited for their answers at the same time, on average (Little's law)."""
    if run.writes.mean is None:
        return MISSING
    return f"{run.writes.answered * run.writes.mean / run.seconds:.1f} of {run.users}"


def _table_1(runs: Sequence[Run]) -> TextTable:
    paper = published.TABLE_1
    rows = [
        [
            "Average insertion time (s) to 200 column table",
            *(f"{one.mean:g}" for one in paper),
            *(seconds(run.wide.mean) for run in runs),
        ],
        [
            "Max delay time (s)",
            *(f"{one.longest:g}" for one in paper),
            *(seconds(run.writes.longest) for run in runs),
        ],
        [
            "Total rate (KB/s)",
            *(f"{one.kilobytes:g}" for one in paper),
            *(number(run.kilobytes) for run in runs),
        ],
        [
            "Rows a second",
            *(f"{published.rows_a_second(one):.0f} (**)" for one in paper),
            *(number(run.rows) for run in runs),
        ],
    ]
    ours = [f"ringlog, {kind(run)}" for run in runs]
    headings = ["", *(f"the paper: {one.name}" for one in paper), *ours]
    return TextTable("Table 1: summary of performance", headings, rows)


def bottleneck(runs: Sequence[Run]) -> Iterator[str]:
    """Whether the clients are the bottleneck, by a run of each kind on the same tables."""
    python = next((run for run in runs if run.clients == PYTHON and run.rows), None)
    native = next((run for run in runs if run.clients == NATIVE), None)
    if python is None or native is None:
        return
    ratio = native.rows / python.rows
    costs = (
        f"For a row the Python users took {processor_time(python, python.share('clients'))} of CPU and the "
        f"server {processor_time(python, python.server_share)}; with native writers these were "
        f"{processor_time(native, native.share('clients'))} and "
        f"{processor_time(native, native.server_share)}."
    )
    if ratio > _FASTER:
        yield (
            f"The Python users measure themselves: native writers got {ratio:.1f} times as many rows into "
            f"the same server on the same machine. {costs} The native column shows the server's capacity."
        )
    else:
        yield (
            f"Python users reach about the rate of native writers, who got {ratio:.2f} times as many rows "
            f"into the same server: the clients are not the bottleneck. {costs}"
        )


_COLUMN_FIGURES = ("rows/s", "KB/s", "mean", "server CPU a row")


def columns(runs: Sequence[Run]) -> Iterator[Section]:
    """Figure 4."""
    widths = sorted({run.columns for run in runs})
    kinds = [one for one in KINDS if any(run.clients == one for run in runs)]
    rows = []
    for width in widths:
        row = [f"{width:.0f}"]
        for clients in kinds:
            run = next((each for each in runs if each.clients == clients and each.columns == width), None)
            row += (
                [
                    number(run.rows),
                    number(run.kilobytes),
                    duration(run.writes.mean),
                    processor_time(run, run.server_share),
                ]
                if run
                else [MISSING] * len(_COLUMN_FIGURES)
            )
        rows.append(row)
    headings = [
        f"{KIND_NAMES[clients].rpartition(' ')[0]}: {what}" for clients in kinds for what in _COLUMN_FIGURES
    ]
    middle = widths[len(widths) // 2] if widths else 0
    limit = [
        f"At {middle:.0f} columns: {text}"
        for text in bottleneck([run for run in runs if run.columns == middle])
    ]
    table = TextTable("Speed and number of columns", ["columns", *headings], rows)
    yield Section("Figure 4", limit, [table], [*figures.columns(runs)])


def users(runs: Sequence[Run]) -> Iterator[Section]:
    """More users than the 120 of the paper."""
    python = [run for run in runs if run.clients == PYTHON]
    native = [run for run in runs if run.clients == NATIVE]
    tables = [*([_python_users(python)] if python else []), *([_native_users(native)] if native else [])]
    if runs:
        yield Section("Users", [bend(runs)], tables, [*figures.users(runs)])


def _python_users(runs: Sequence[Run]) -> TextTable:
    headings = [
        "users",
        "logged in",
        "login, mean",
        "rows/s requested",
        "rows/s",
        "write: median",
        "99 %",
        "longest",
    ]
    headings += ["read: median", "99 %", "server CPU", "clients' CPU", "failed calls"]
    rows = []
    for run in runs:
        reads = (run.reads.p50, run.reads.p99) if run.reads else (None, None)
        rows.append(
            [
                number(run.users),
                number(run.logged_in),
                duration(run.logins.mean if run.logins else None),
                number(run.asked),
                number(run.rows),
                *(duration(one) for one in (run.writes.p50, run.writes.p99, run.writes.longest, *reads)),
                percent(run.server_share),
                percent(run.share("clients")),
                number(_failed(run)),
            ]
        )
    return TextTable("Python users at the normal rate, half of them writers", headings, rows)


def _native_users(runs: Sequence[Run]) -> TextTable:
    headings = ["users", "rows/s", "KB/s", "mean", "median", "99 %", "longest", "server CPU", "clients' CPU"]
    rows = []
    for run in runs:
        latencies = (run.writes.mean, run.writes.p50, run.writes.p99, run.writes.longest)
        rows.append(
            [
                *(number(one) for one in (run.users, run.rows, run.kilobytes)),
                *(duration(one) for one in latencies),
                percent(run.server_share),
                percent(run.share("clients")),
            ]
        )
    width = runs[0].columns
    return TextTable(f"Native writers at the highest rate, {width:.0f} columns a table", headings, rows)


def bend(runs: Sequence[Run]) -> str:
    """A sentence on the number of users from which on calls are no longer answered in time."""
    before: Run | None = None
    for run in runs:
        if run.clients != PYTHON:
            continue
        if reason := _bent(run):
            where = f"between {before.users:,} and {run.users:,}" if before else f"below {run.users:,}"
            whose = ""
            if run.server_share is not None:
                whose = (
                    f" There the clients took {percent(run.share('clients'))} of the machine, the server "
                    f"{percent(run.server_share)}, everything together {percent(run.share('machine'))}."
                )
            if (share := others(run) or 0.0) > DISTURBED:
                whose += (
                    f" Processes that have nothing to do with it took {percent(share)}: on a quiet machine "
                    "it may not bend there."
                )
            return f"At the normal rate it bends {where} users: {reason}.{whose}"
        before = run
    if before:
        return (
            f"At the normal rate it does not bend up to {before.users:,} users: every requested row is "
            f"acknowledged, 99 % of the rows within {duration(before.writes.p99)}."
        )
    return "Users at the normal rate were not tried."


def _bent(run: Run) -> str:
    if run.logged_in < run.users:
        return f"only {run.logged_in:,} of {run.users:,} could log in"
    if failed := _failed(run):
        return f"{failed:,} calls failed"
    if run.asked is not None and run.rows < _ANSWERED * run.asked:
        return f"{run.rows:,.0f} of {run.asked:,.0f} rows a second were acknowledged"
    if run.writes.p99 is not None and run.writes.p99 > _SHORTEST_CYCLE:
        return f"1 % of the rows took longer than {run.writes.p99:.1f} s, the shortest cycle being 1 s"
    return ""


def _failed(run: Run) -> int:
    return run.writes.failed + (run.reads.failed if run.reads else 0)


def troubles(runs: Sequence[Run]) -> Iterator[Section]:
    """The errors of failed calls, as users saw them."""
    texts = [
        f"{run.users:,} {kind(run)}, {run.columns:.0f} columns: {run.complaint}"
        for run in runs
        if run.complaint and (_failed(run) or run.logged_in < run.users)
    ]
    if texts:
        yield Section("Failed calls", texts)


def times(caption: str, runs: Sequence[Run]) -> TextTable:
    """Numbers and times of all kinds of calls."""
    rows = []
    for run in runs:
        for what, calls in (("writes", run.writes), ("reads", run.reads), ("logins", run.logins)):
            if calls is not None:
                rows.append([f"{kind(run)}: {what}", *_times(calls)])
    return TextTable(caption, ["", "calls", "failed", "mean", "median", "99 %", "longest"], rows)


def _times(calls: Calls) -> list[str]:
    latencies = (calls.mean, calls.p50, calls.p99, calls.longest)
    return [number(calls.answered), number(calls.failed), *(duration(one) for one in latencies)]
