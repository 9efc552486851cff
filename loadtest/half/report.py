"""What `half` found, beside papers/002."""

from collections.abc import Iterator, Mapping, Sequence

from ringlog.loadtest.experiment.document import Table
from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Figure, Line, Outcome, Plot, Section
from ringlog.loadtest.experiment.report import amount
from ringlog.loadtest.experiment.stage import Stage
from ringlog.loadtest.half import published
from ringlog.loadtest.half.ioc import Listened, missing_part
from ringlog.loadtest.half.replay import PVS_OF_A_TABLE
from ringlog.loadtest.half.targets import CONNECTIONS, Inserted, Queried

_IOC = "From a real IOC"
_METHOD = [
    f"An item is a PV's value with time, nanoseconds, severity and status. ringlog has {PVS_OF_A_TABLE} PVs "
    "in a table, a row for each of their 10 updates a second; the narrow table has a row for each item and "
    "a key of PV and time.",
    f"IDPS: a batch of all PVs by {CONNECTIONS} connections, ringlog's by put_<table>_batch over TDS, which "
    "is how a recording is replayed (ring and log, row by row), the narrow table's by COPY straight into "
    "PostgreSQL, one transaction a connection. What is sent was made before; times end with the last commit.",
    "QDPS: all items of one PV over a time, until they are there in PostgreSQL's binary form, not decoded; "
    "the median of at least three queries after one that does not count. get_signal gives time and value "
    "only.",
    "IOC: calc records of a real soft IOC that count, each PV at 10 Hz, over Channel Access into `ringlog "
    "load --source ca`. An update that is missing in the log shows as a gap in its count; the IOC itself "
    "drops updates when it has no time, and both share this machine.",
    "TimescaleDB, QuestDB and InfluxDB were not in this run: `ringlog loadtest half` does not start them.",
]


def outcome(
    stage: Stage,
    pvs: int,
    minutes: Sequence[float],
    hours: float,
    inserted: Sequence[Inserted],
    queried: Sequence[Queried],
    listened: Listened | None,
    found: Mapping[str, tuple[int, int]],
) -> Outcome:
    """The experiment's outcome."""
    counted = [Counted(f"items in {name}", sent, there) for name, (sent, there) in found.items()]
    spans = ", ".join(f"{one:g}" for one in minutes)
    return stage.finish(
        "HALF's archive (papers/002)",
        published.SOURCE,
        f"{pvs:,} PVs; batches of {spans} min, queries of up to {hours:g} h; four days of data there. The "
        f"IOC ran for {in_words(round(stage.seconds, 2))}.",
        counted,
        [*_figures(inserted, queried, listened)],
        [_ioc(listened), _idps(inserted), _qdps(queried)],
        _METHOD,
    )


def _figures(
    inserted: Sequence[Inserted], queried: Sequence[Queried], listened: Listened | None
) -> Iterator[Figure]:
    if listened is not None:
        yield Figure(
            "updates",
            f"updates of {listened.pvs:,} PVs from an IOC",
            "items/s",
            listened.updates / max(listened.seconds, 0.1),
            float(listened.pvs * published.HERTZ),
            different="the rate that the PVs have; IOC, writers and server on one machine",
        )
        yield Figure(
            "missing",
            "updates missing in the log",
            "%",
            100 * listened.missing / max(1, listened.updates),
        )
    for target in dict.fromkeys(one.target for one in inserted):
        best = max(one.rate for one in inserted if one.target == target)
        yield Figure(
            f"idps {target}",
            f"IDPS, {target}",
            "items/s",
            best,
            published.IDPS_INFLUX,
            different=f"{published.IDPS_TIMESCALE:,.0f} there with TimescaleDB; one machine here",
        )
    for way in dict.fromkeys(one.target for one in queried):
        best = max(one.rate for one in queried if one.target == way)
        yield Figure(
            f"qdps {way}",
            f"QDPS, {way}",
            "items/s",
            best,
            published.QDPS,
            different="TimescaleDB there, over a network; results not decoded here",
        )


def _ioc(listened: Listened | None) -> Section:
    if listened is None:
        text = f"Not run: a soft IOC needs {missing_part()} (pip install 'ringlog[epics]' pvxslibs)."
        return Section(_IOC, [text])
    asked = listened.pvs * published.HERTZ
    rows = [
        ["PVs", f"{listened.pvs:,}"],
        ["seconds", f"{listened.seconds:.1f}"],
        [
            "updates a second, as the PVs' counts say",
            f"{listened.updates / max(listened.seconds, 0.1):,.0f} of {asked:,}",
        ],
        ["updates missing in the log", f"{listened.missing:,} of {listened.updates:,}"],
        ["rows a second", f"{listened.rows / listened.seconds:,.0f}"],
    ]
    return Section(_IOC, (), [Table("", ["", ""], rows)])


def _idps(inserted: Sequence[Inserted]) -> Section:
    rows = [
        [one.target, f"{one.minutes:g}", f"{one.items:,}", f"{one.seconds:.2f}", amount(one.rate)]
        for one in inserted
    ]
    rows.append(["the paper, InfluxDB", "0.1 to 1", "-", "-", amount(published.IDPS_INFLUX)])
    rows.append(["the paper, TimescaleDB", "0.1 to 1", "-", "-", amount(published.IDPS_TIMESCALE)])
    names = dict.fromkeys(one.target for one in inserted)
    plot = Plot(
        "idps",
        "Items inserted a second against the length of a batch.",
        "minutes in a batch",
        "items/s",
        [
            *(
                Line(name, [(one.minutes, one.rate) for one in inserted if one.target == name])
                for name in names
            ),
            Line(
                "the paper, InfluxDB",
                [(0.1, published.IDPS_INFLUX), (1.0, published.IDPS_INFLUX)],
                paper=True,
            ),
        ],
    )
    headings = ["", "minutes in a batch", "items", "seconds", "items/s"]
    return Section("Writing (IDPS)", (), [Table("Inserted", headings, rows)], [plot])


def _qdps(queried: Sequence[Queried]) -> Section:
    rows = [
        [one.target, f"{one.hours:g}", f"{one.items:,}", f"{1e3 * one.seconds:.2f}", amount(one.rate)]
        for one in queried
    ]
    rows.append(["the paper, TimescaleDB", "0.4 to 10", "14,400 to 360,000", "-", amount(published.QDPS)])
    names = dict.fromkeys(one.target for one in queried)
    plot = Plot(
        "qdps",
        "Items read a second against the time that is read, one PV.",
        "hours",
        "items/s",
        [
            *(Line(name, [(one.hours, one.rate) for one in queried if one.target == name]) for name in names),
            Line("the paper, TimescaleDB", [(0.4, published.QDPS), (10.0, published.QDPS)], paper=True),
        ],
        True,
    )
    headings = ["", "hours", "items", "milliseconds", "items/s"]
    return Section("Reading (QDPS)", (), [Table("One PV", headings, rows)], [plot])
