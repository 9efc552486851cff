"""The results of `half`, compared with papers/002."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Figure, Line, Outcome, Plot, Section
from ringlog.loadtest.experiment.report import MISSING, amount
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.half import published
from ringlog_lab.half.ioc import Listened
from ringlog_lab.half.replay import MOST_HOURS, PVS_OF_A_TABLE
from ringlog_lab.half.target import CONNECTIONS, Kept, Replayed, Timed
from ringlog_lab.peers.finding import INFLUXDB, QUESTDB, TIMESCALEDB, TITLES
from ringlog_lab.stage import Stage

_IOC = "From a real IOC"
_METHOD = [
    f"An item is a PV's value with time, nanoseconds, severity and status. ringlog has {PVS_OF_A_TABLE} PVs "
    "in a table, a row for each of their 10 updates a second; `ringlog, samples` is one table of samples "
    "of all PVs, whose blocks are merged between writing and reading; the other tables have a row for each "
    "item and a key of PV and time.",
    f"IDPS: a batch of all PVs by {CONNECTIONS} connections, ringlog's by put_<table>_batch over TDS, which "
    "is how a recording is replayed (ring and log, row by row; samples as packed arrays), a narrow table's "
    "by COPY straight into PostgreSQL, one transaction a connection. What is sent was made before; times end "
    "with the last commit, and when all of it can be read. All servers have what they acknowledged on the "
    "disk.",
    "QDPS: all items of one PV over a time, until they are there in PostgreSQL's binary form, not decoded; "
    "the median of at least three queries after one that does not count. get_signal gives time and value "
    "only.",
    "CPU: of a batch that of the gateway and all of PostgreSQL, or of the other server's process; of a query "
    "that of the PostgreSQL process which answers, the mean of all queries. The clock also counts the client "
    "and what else runs on the machine: during other work, compare by CPU.",
    "IOC: calc records of a real soft IOC that count, each PV at 10 Hz, over Channel Access into `ringlog "
    "load --source ca`. An update that is missing in the log shows as a gap in its count; the IOC itself "
    "drops updates when it has no time, and both share this machine.",
]
_BESIDE = {
    TIMESCALEDB: "TimescaleDB: a narrow hypertable with chunks of an hour, and its twin that is compressed "
    "(segments of a PV, in the order of time) between writing and reading, on a PostgreSQL of its own with "
    "the settings of ringlog's. Both are written as the narrow table is.",
    QUESTDB: "QuestDB: a table with an hour a partition and PVs as indexed symbols, written over HTTP by "
    "its own client, read over PostgreSQL's protocol; `cairo.commit.mode` is sync.",
    INFLUXDB: "InfluxDB: a series a PV, written and read by its own client in requests of 5,000 items. That "
    "client decodes what it reads; time includes the nanoseconds.",
}


@dataclass(frozen=True)
class Scale:
    """The amounts written and read."""

    pvs: int
    minutes: Sequence[float]
    hours: float


def outcome(
    stage: Stage,
    scale: Scale,
    inserted: Sequence[Timed],
    replayed: Replayed | None,
    kept: Sequence[Kept],
    queried: Sequence[Timed],
    listened: Listened | str,
    versions: Mapping[str, str],
    absent: Mapping[str, str],
) -> Outcome:
    """The experiment's outcome. `listened` may be the reason for a missing IOC, `versions` are those of other
    servers, `absent` has the reasons for missing ones.
    """
    counted = [Counted(f"items in {one.target}", one.items, one.found) for one in kept]
    spans = ", ".join(f"{one:g}" for one in scale.minutes)
    missing = "; ".join(f"{TITLES[name]}: {why}" for name, why in absent.items())
    return stage.finish(
        "HALF's archive (papers/002)",
        published.SOURCE,
        f"{scale.pvs:,} PVs; batches of {spans} min, queries of up to {scale.hours:g} h; four days of data "
        "there."
        + (f" The IOC ran for {in_words(round(stage.seconds, 2))}." if isinstance(listened, Listened) else "")
        + (f" Not in this run: {missing}." if missing else ""),
        counted,
        [*_figures(inserted, replayed, queried, listened)],
        [
            _ioc(listened),
            _idps(inserted),
            *([] if replayed is None else [_replay(replayed)]),
            _kept(kept),
            _qdps(queried),
        ],
        [*_METHOD, *(text for name, text in _BESIDE.items() if name not in absent)],
        extra=dict(versions),
    )


def _figures(
    inserted: Sequence[Timed], replayed: Replayed | None, queried: Sequence[Timed], listened: Listened | str
) -> Iterator[Figure]:
    if isinstance(listened, Listened):
        yield Figure(
            "updates",
            f"updates of {listened.pvs:,} PVs from an IOC",
            "items/s",
            listened.rate,
            float(listened.pvs * published.HERTZ),
            different="the rate that the PVs have; IOC, writers and server on one machine",
        )
        yield Figure(
            "missing", "updates missing in the log", "%", 100 * listened.missing / max(1, listened.updates)
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
    if replayed is not None:
        yield Figure(
            "replayed",
            f"IDPS of {replayed.hours:g} h, ringlog",
            "items/s",
            replayed.rate,
            published.IDPS_INFLUX,
            different="the mean of all batches; one machine here",
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


def _ioc(listened: Listened | str) -> Section:
    if isinstance(listened, str):
        return Section(_IOC, [f"Not run: {listened}."])
    asked = listened.pvs * published.HERTZ
    rows = [
        ["PVs", f"{listened.pvs:,}"],
        ["seconds", f"{listened.seconds:.1f}"],
        ["updates a second, as the PVs' counts say", f"{listened.rate:,.0f} of {asked:,}"],
        ["updates missing in the log", f"{listened.missing:,} of {listened.updates:,}"],
        ["rows a second", f"{listened.rows:,.0f}"],
        ["CPU of the IOC, cores", f"{listened.ioc:.2f}"],
        ["CPU of the writers, cores", f"{listened.writers:.2f}"],
        ["CPU of gateway and PostgreSQL, cores", f"{listened.server:.2f}"],
    ]
    return Section(_IOC, (), [TextTable("", ["", ""], rows)])


def _idps(inserted: Sequence[Timed]) -> Section:
    rows = [
        [*_length(one), f"{one.seconds:.2f}", amount(one.rate), f"{1e6 * one.cpu / one.items:.2f}"]
        for one in inserted
    ]
    rows.append(["the paper, InfluxDB", "0.1 to 1", "-", "-", amount(published.IDPS_INFLUX), "-"])
    rows.append(["the paper, TimescaleDB", "0.1 to 1", "-", "-", amount(published.IDPS_TIMESCALE), "-"])
    paper = [(length, published.IDPS_INFLUX) for length in (0.1, 1.0)]
    lines = [*_lines(inserted), Line("the paper, InfluxDB", paper, paper=True)]
    title = "Items inserted a second against the length of a batch."
    plot = Plot("idps", title, "minutes in a batch", "items/s", lines)
    headings = ["", "minutes in a batch", "items", "seconds", "items/s", "CPU of the server, µs an item"]
    return Section("Writing (IDPS)", (), [TextTable("Inserted", headings, rows)], [plot])


def _length(one: Timed) -> list[str]:
    return [one.target, f"{one.length:g}", f"{one.items:,}"]


def _lines(timed: Sequence[Timed]) -> list[Line]:
    """Rate against length, a line for each target."""
    names = dict.fromkeys(one.target for one in timed)
    return [Line(name, [(one.length, one.rate) for one in timed if one.target == name]) for name in names]


def _replay(replayed: Replayed) -> Section:
    batches = replayed.batches
    tenth = max(1, len(batches) // 10)
    all_of_it = MOST_HOURS / replayed.hours

    def rate(some: Sequence[Timed]) -> str:
        return amount(sum(one.items for one in some) / sum(one.seconds for one in some))

    rows = [
        ["items", f"{replayed.items:,}"],
        ["seconds of writing", f"{replayed.seconds:.1f}"],
        ["items/s", amount(replayed.rate)],
        ["items/s, first tenth", rate(batches[:tenth])],
        ["items/s, last tenth", rate(batches[-tenth:])],
        ["bytes an item on the disk", f"{replayed.bytes / replayed.items:.1f}"],
        [f"{MOST_HOURS} h would take, hours", f"{replayed.seconds * all_of_it / 3600:.2f}"],
        [f"{MOST_HOURS} h would fill, GB", f"{replayed.bytes * all_of_it / 1e9:.1f}"],
    ]
    text = (
        f"{replayed.hours:g} h of all PVs written into ringlog as a recording is replayed, one batch after "
        f"another. What {MOST_HOURS} h would take is extrapolated at the mean rate."
    )
    return Section("Replay of hours", [text], [TextTable("", ["", ""], rows)])


def _kept(kept: Sequence[Kept]) -> Section:
    rows = [
        [
            one.target,
            f"{one.items:,}",
            f"{one.bytes / 1e6:,.1f}",
            f"{one.bytes / max(1, one.items):.1f}",
            MISSING if one.seconds is None else f"{one.seconds:.2f}",
        ]
        for one in kept
    ]
    headings = ["", "items", "MB on the disk", "bytes an item", "seconds to compress"]
    text = (
        "After all that was written, indexes and what servers set aside included, without the write-ahead "
        "logs of PostgreSQL and QuestDB. Few items are not what years of them are: partitions have room "
        "ahead, merged blocks leave room for later ones, and InfluxDB has its newest values in its "
        "write-ahead log."
    )
    return Section("Room", [text], [TextTable("On the disk", headings, rows)])


def _qdps(queried: Sequence[Timed]) -> Section:
    rows = [
        [*_length(one), f"{1e3 * one.seconds:.2f}", amount(one.rate), f"{1e3 * one.cpu:.2f}"]
        for one in queried
    ]
    paper = "the paper, TimescaleDB"
    rows.append([paper, "0.4 to 10", "14,400 to 360,000", "-", amount(published.QDPS), "-"])
    lines = [*_lines(queried), Line(paper, [(0.4, published.QDPS), (10.0, published.QDPS)], paper=True)]
    title = "Items read a second against the time that is read, one PV."
    plot = Plot("qdps", title, "hours", "items/s", lines, True)
    headings = ["", "hours", "items", "milliseconds", "items/s", "CPU of the server, ms"]
    return Section("Reading (QDPS)", (), [TextTable("One PV", headings, rows)], [plot])
