"""Formats figures for reports; a dash for unknown ones."""

from ringlog.loader.display import milliseconds
from ringlog.loadtest.spring8.results import CTLIB, NATIVE, PYTHON, Run

MISSING = "-"

KIND_NAMES = {PYTHON: "Python users", CTLIB: "ct-library writers", NATIVE: "native writers"}


def percent(share: float | None) -> str:
    """A part of the whole, 0 to 1."""
    return MISSING if share is None else f"{100 * share:.{0 if share >= 0.095 else 1}f} %"


def seconds(time: float | None) -> str:
    """Two digits of seconds, as in table 1 of papers/004."""
    if time is None:
        return MISSING
    return f"{time:.2g}" if time < 9.5 else f"{time:.0f}"


def duration(time: float | None) -> str:
    return MISSING if time is None else milliseconds(time)


def number(count: float | None) -> str:
    return MISSING if count is None else f"{count:,.0f}"


def processor_time(run: Run, share: float | None) -> str:
    """CPU per row, from a share of the machine."""
    if share is None or not run.rows:
        return MISSING
    return f"{1e6 * share * run.cores / run.rows:,.0f} µs"


def server_seconds(run: Run) -> float | None:
    """CPU a row of PostgreSQL and gateway together."""
    if run.server_share is None or not run.rows:
        return None
    return run.server_share * run.cores / run.rows


def kind(run: Run) -> str:
    """The kind of clients of a load."""
    return KIND_NAMES[run.clients]


def others(run: Run) -> float | None:
    """The share of the machine used by other processes."""
    server, clients, machine = run.server_share, run.share("clients"), run.share("machine")
    if server is None or clients is None or machine is None:
        return None
    return max(0.0, machine - server - clients)
