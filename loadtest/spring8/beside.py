"""The figures of papers/004 beside ours, for the summary of all experiments."""

from collections.abc import Iterator, Sequence

from ringlog.loadtest.experiment.outcome import Figure
from ringlog.loadtest.spring8 import published
from ringlog.loadtest.spring8.format import kind
from ringlog.loadtest.spring8.results import Result, Run

_SHARED = "clients on the same machine; every row goes to a log as well"


def figures_of(result: Result) -> Iterator[Figure]:
    """The figures stated in the paper, and for comparisons between runs those that it only draws."""
    yield from _FIGURES[result.experiment](result.runs)


def _normal(runs: Sequence[Run]) -> Iterator[Figure]:
    for run in runs:
        yield Figure(
            "kilobytes",
            "rate at normal operation",
            "KB/s",
            run.kilobytes,
            published.NORMAL_KILOBYTES,
            different=_SHARED,
        )
        share = run.server_share
        yield Figure(
            "cpu",
            "CPU of the server at normal operation",
            "% of a core",
            None if share is None else 100 * share * run.cores,
            100 * published.CPU_SHARE,
            "<",
            f"one CPU of 450 MHz there, {run.cores} cores here",
        )
        last = run.closing or run.samples[-1]
        if last.wal_operations is not None and last.table_operations:
            log = last.wal_operations / (last.wal_operations + last.table_operations)
            yield Figure(
                "log",
                "the log's share of disk operations",
                "%",
                100 * log,
                100 * published.LOG_SHARE,
                different="write-ahead log in place of a log segment; checkpoints are rarer",
            )
        yield Figure("p99", "99 % of rows written within", "s", run.writes.p99)


def _highest(runs: Sequence[Run]) -> Iterator[Figure]:
    linux = published.TABLE_1[0]
    for run in runs:
        yield Figure(
            f"kilobytes {run.clients}",
            f"highest rate, {kind(run)}",
            "KB/s",
            run.kilobytes,
            linux.kilobytes,
            different=_SHARED,
        )
        yield Figure(
            f"mean {run.clients}",
            f"mean time of a row of 200 columns, {kind(run)}",
            "s",
            run.wide.mean,
            linux.mean,
            different=_SHARED,
        )
        yield Figure(
            f"longest {run.clients}",
            f"longest time of a row, {kind(run)}",
            "s",
            run.writes.longest,
            linux.longest,
            different=f"{_SHARED}; a shorter load",
        )


def _columns(runs: Sequence[Run]) -> Iterator[Figure]:
    for run in runs:
        title = f"{run.columns:.0f} columns, {kind(run)}"
        yield Figure(f"rows {run.columns:.0f} {run.clients}", title, "rows/s", run.rows)


def _users(runs: Sequence[Run]) -> Iterator[Figure]:
    for run in runs:
        yield Figure(f"rows {run.users} {run.clients}", f"{run.users} users, {kind(run)}", "rows/s", run.rows)


_FIGURES = {"normal": _normal, "max": _highest, "columns": _columns, "users": _users}
