"""docs/reference/figures.md: the figures of speed that the documentation quotes, with their spread.

    python -m ringlog_lab.published         # measures for about 20 minutes; `make figures`

They are measured on a machine that does nothing else.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.bench.reports.results import Results
from ringlog_lab.native_load import CONTENDERS, DIRECT, Measurement
from ringlog_lab.quiet import LOAD, disturbance

_SECONDS, _ROUNDS = 60, 3
_COMMAND = (
    *("bench", "--only", "write,lone", "--seconds", str(_SECONDS), "--rounds", str(_ROUNDS)),
    *("--out", ".bench/figures"),
)
_RESULTS = Path(".bench/figures/bench.json")

NOT_TRIED = """\
Not tried yet: a real Sybase ASE or SQL Server (`make test-clients` uses their clients against ringlog), an
installation that has run for years, arm64 hardware.
"""

_Of = Callable[[Measurement], float]
_FULL_RATE: tuple[tuple[str, _Of, int], ...] = (
    ("calls/s", lambda one: one.rate, 0),
    ("values/s", lambda one: one.values, 0),
    ("CPU of PostgreSQL, µs a call", lambda one: one.each(one.backends) * 1e6, 1),
    ("CPU of the gateway, µs a call", lambda one: one.each(one.gateway) * 1e6, 1),
    ("median of a call, ms", lambda one: one.p50 * 1e3, 2),
    ("99th percentile, ms", lambda one: one.p99 * 1e3, 2),
    ("longest call, ms", lambda one: one.max * 1e3, 0),
)
_LONE: tuple[tuple[str, _Of, int], ...] = (
    ("median of a call, µs", lambda one: one.p50 * 1e6, 0),
    ("99th percentile, µs", lambda one: one.p99 * 1e6, 0),
)


def page(results: Results) -> str:
    """The document, in Markdown."""
    machine = results.machine
    others = statistics.median(one.others / one.seconds for one in results.measurements)
    parts = [
        "# Figures\n",
        "The only figures of speed that other pages quote. `make figures` makes this page; do not edit it. "
        f"It refuses a machine whose load average is {LOAD} or more. Each cell is the median of {_ROUNDS} "
        f"runs of {_SECONDS} s, in brackets the lowest and the highest. The contenders alternate; "
        "[benchmark](benchmark.md) describes them.\n",
        f"ringlog {results.commit}, {results.started}; {machine['processor']}, {machine['cores']} cores, "
        f"PostgreSQL {results.settings.get('server_version', '?')}; data on {machine['file_system']}. Other "
        f"processes used {others:.2f} cores (median).\n",
        _table(results, "write", "60 writers of 200 reals, each call durable", _FULL_RATE).markdown(),
        "",
        _table(results, "lone", "One caller on an idle server", _LONE).markdown(),
        "",
        NOT_TRIED,
    ]
    return "\n".join(parts)


def _table(results: Results, part: str, title: str, figures: Iterable[tuple[str, _Of, int]]) -> TextTable:
    contenders = [one for one in CONTENDERS.values() if results.of(part, one.key)]
    rows = [
        [name, *(_cell([figure(run) for run in results.of(part, one.key)], digits) for one in contenders)]
        for name, figure, digits in figures
    ]
    if part == "write":
        rows.insert(
            1, ["calls/s ÷ direct, one by one", *(_cell(_ratios(results, one.key), 2) for one in contenders)]
        )
    return TextTable(title, [title, *(one.title for one in contenders)], rows)


def _ratios(results: Results, contender: str) -> list[float]:
    """Of the rounds' rates: both contenders of a round have run one after the other."""
    direct = {one.round: one.rate for one in results.of("write", DIRECT.key)}
    return [one.rate / direct[one.round] for one in results.of("write", contender)]


def _cell(runs: list[float], digits: int) -> str:
    low, middle, high = min(runs), statistics.median(runs), max(runs)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def main() -> int:
    if why := disturbance():
        print(f"ringlog: {why}. Stop other programs and wait a few minutes.", file=sys.stderr)
        return 1
    if code := subprocess.run([Path(sys.executable).with_name("ringlog"), *_COMMAND]).returncode:
        return code
    Path("docs/reference/figures.md").write_text(page(Results.read(_RESULTS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
