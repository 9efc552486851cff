"""The results of `sdalinac`, compared with table 3 and figure 1 of papers/000."""

from collections.abc import Iterator, Mapping, Sequence

from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Figure, Line, Outcome, Plot, Section
from ringlog.loadtest.experiment.report import MISSING, amount
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.sdalinac import published
from ringlog_lab.sdalinac.reading import MIX, OWN, SIGNALS, Read
from ringlog_lab.sdalinac.writing import BATCH, TABLES, Wrote
from ringlog_lab.stage import Stage

_ONE_CLIENT = "one client in Python on the same machine; PostgreSQL 18"
_METHOD = [
    f"Tables: INSERTs of one client sent together, {BATCH:,} in a transaction, as CSS's archive engine does "
    "by JDBC. The paper's partitions are tables that inherit, behind a trigger that makes and finds the "
    "table of a week; declared partitions came with PostgreSQL 10. The index is on channel and time in all "
    "of them.",
    "Schemes write the table with keys (without partitions); those that call put_sample write ringlog's own "
    "table of one double, ring and log. `calls in one batch` is a text of many EXECs in one transaction. "
    "One client waits for each answer: many writers at once are the experiment `max`. COPY and multi-row "
    "INSERT go straight to PostgreSQL by psycopg, the others over TDS by pymssql.",
    f"Readers: {SIGNALS} signals. Of a hundred queries "
    + ", ".join(f"{number} are {kind}" for kind, number in MIX.items())
    + ". A year is 1,000 points of count, least, greatest and mean. Times are until the result is there, in "
    "PostgreSQL's binary form. Cold is the first query of a kind after PostgreSQL's buffers were emptied (by "
    "pg_buffercache, where it is installed); the kernel's cache stays warm.",
]


def outcome(
    stage: Stage,
    tables: Sequence[Wrote],
    schemes: Sequence[Wrote],
    read: Sequence[Read],
    values: int,
    every: float,
) -> Outcome:
    """The experiment's outcome."""
    counted = [
        Counted(f"rows by {TABLES.get(one.scheme, one.scheme)}, {one.batch:,} a batch", one.rows, one.found)
        for one in (*tables, *schemes)
    ]
    return stage.finish(
        "The narrow table of S-DALINAC's archiver (papers/000, 001)",
        published.SOURCE,
        f"Each load lasted {in_words(round(stage.seconds, 2))}; the archive that was read has {values:,} "
        f"values, one every {every:g} s in the last day and 360 times as far apart in the year before.",
        counted,
        [*_figures(tables, schemes, read)],
        [_tables(tables), _schemes(schemes), _reading(read)],
        _METHOD,
    )


def _figures(tables: Sequence[Wrote], schemes: Sequence[Wrote], read: Sequence[Read]) -> Iterator[Figure]:
    for one in tables:
        yield Figure(
            f"table {one.scheme}",
            f"narrow table, {TABLES[one.scheme]}",
            "rows/s",
            one.rate,
            published.WRITE_RATES.get(one.scheme),
            different=_ONE_CLIENT,
        )
        if one is not tables[0] and one.scheme in published.WRITE_RATES:
            yield Figure(
                f"cost {one.scheme}",
                f"{TABLES[one.scheme]}: rows for the CPU of a row without both",
                "rows",
                _for_the_same(tables[0], one),
                published.WRITE_RATES[one.scheme] / published.WRITE_RATES["plain"],
                different="CPU of PostgreSQL alone; there rates, of a Java client and PostgreSQL together",
            )
    for one in schemes:
        yield Figure(
            f"scheme {one.scheme} {one.batch}",
            f"{one.scheme}, {one.batch:,} rows",
            "values/s" if one.values > 1 else "rows/s",
            one.rate * one.values,
        )
    for each in read:
        yield Figure(
            f"read {each.target}",
            f"queries below {1e3 * published.WITHIN:.0f} ms, {_target(each)}",
            "%",
            100 * each.within(published.WITHIN),
            100 * published.SHARE,
            different=f"{each.clients} clients at once with a mix; there single queries of real use",
        )


def _target(read: Read) -> str:
    return read.target if read.target == OWN else f"narrow table, {TABLES[read.target]}"


def _for_the_same(first: Wrote, other: Wrote) -> float | None:
    """Rows of the other for the CPU of one of the first. None when it took less than the clock resolves."""
    return first.cost / other.cost if other.cost else None


def _tables(tables: Sequence[Wrote]) -> Section:
    rows = []
    for one in tables:
        there = published.WRITE_RATES.get(one.scheme)
        rows.append(
            [
                TABLES[one.scheme],
                f"{one.rate:,.0f}",
                f"{one.rate / tables[0].rate:.2f}",
                f"{1e6 * one.cost:.1f}",
                MISSING if (part := _for_the_same(tables[0], one)) is None else f"{part:.2f}",
                f"{there:,.0f}" if there else MISSING,
                f"{there / published.WRITE_RATES['plain']:.2f}" if there else MISSING,
            ]
        )
    headings = [
        "",
        "rows/s",
        "of the first",
        "PostgreSQL's CPU, µs a row",
        "rows for the first's",
        "paper: rows/s",
        "of the first",
    ]
    text = (
        "A row takes one client in Python more CPU than it takes PostgreSQL, so the rates are closer to each "
        "other than the tables are: rows for the same CPU of PostgreSQL compare these."
    )
    return Section("Keys and partitions (table 3)", [text], [TextTable("Write rates", headings, rows)])


def _schemes(schemes: Sequence[Wrote]) -> Section:
    names = list(dict.fromkeys(one.scheme for one in schemes))
    batches = sorted({one.batch for one in schemes})
    rates = {(one.scheme, one.batch): one.rate * one.values for one in schemes}
    costs = {(one.scheme, one.batch): 1e6 * one.cost / one.values for one in schemes}

    def table(figures: Mapping[tuple[str, int], float], form: str) -> list[list[str]]:
        return [
            [
                name,
                *(
                    format(figures[name, batch], form) if (name, batch) in figures else MISSING
                    for batch in batches
                ),
            ]
            for name in names
        ]

    lines = [
        Line(name, [(batch, rates[name, batch]) for batch in batches if (name, batch) in rates])
        for name in names
    ]
    plot = Plot(
        "schemes",
        "Figure 1: values a second against rows in a batch. The paper draws its figure without numbers.",
        "rows in a batch",
        "values/s",
        lines,
        True,
        True,
    )
    columns = [f"{batch:,} rows" for batch in batches]
    shown = [
        TextTable(
            "Values written a second, by rows in a batch", ["values/s", *columns], table(rates, ",.0f")
        ),
        TextTable(
            "CPU of PostgreSQL and the gateway for a value, by rows in a batch",
            ["µs", *columns],
            table(costs, ",.1f"),
        ),
    ]
    text = "Rates are of one client, which makes the rows in Python; the server's CPU does not depend on it."
    return Section("Write schemes (figure 1)", [text], shown, [plot])


def _reading(read: Sequence[Read]) -> Section:
    rows = []
    for each in read:
        rows.append(_row(_target(each), each.all, each.within(published.WITHIN)))
        for kind, times in each.times.items():
            within = sum(one <= published.WITHIN for one in times) / len(times) if times else None
            cold = each.cold.get(kind)
            rows.append(_row(f"… {kind}", sorted(times), within, cold))
    headings = [
        "",
        "queries",
        "median, ms",
        "90 %, ms",
        "99 %, ms",
        "longest, ms",
        "below 250 ms",
        "cold, ms",
    ]
    lines = []
    for each in read:
        times = each.all
        step = max(1, len(times) // 200)
        points = [
            (1e3 * times[index], 100 * (index + 1) / len(times)) for index in range(0, len(times), step)
        ]
        lines.append(Line(_target(each), points))
    lines.append(
        Line("the paper", [(1e3 * published.WITHIN, 100 * published.SHARE)], joined=False, paper=True)
    )
    plot = Plot(
        "reading",
        "Distribution of response times, all queries of the mix.",
        "ms",
        "% of the queries",
        lines,
        True,
    )
    text = "; ".join(
        f"{_target(each)}: {100 * each.within(published.WITHIN):.3g} % below 250 ms, 90 % below "
        f"{amount(1e3 * _quantile(each.all, 0.9))} ms"
        for each in read
    )
    return Section("Reading", [f"{text}."], [TextTable("Response times", headings, rows)], [plot])


def _row(name: str, times: Sequence[float], within: float | None, cold: float | None = None) -> list[str]:
    quantiles = [amount(1e3 * _quantile(times, part)) if times else MISSING for part in (0.5, 0.9, 0.99, 1.0)]
    return [
        name,
        f"{len(times):,}",
        *quantiles,
        MISSING if within is None else f"{100 * within:.3g} %",
        MISSING if cold is None else amount(1e3 * cold),
    ]


def _quantile(times: Sequence[float], part: float) -> float:
    """Of sorted times."""
    return times[min(len(times) - 1, int(part * len(times)))]
