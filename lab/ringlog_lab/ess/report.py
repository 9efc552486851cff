"""The results of `ess`, compared with tables 2 and 3 of papers/003."""

from collections.abc import Iterator, Mapping, Sequence

from ringlog.loadtest.experiment.duration import in_words
from ringlog.loadtest.experiment.outcome import Counted, Figure, Line, Outcome, Plot, Point, Section
from ringlog.loadtest.experiment.report import MISSING, amount
from ringlog.loadtest.experiment.text_table import TextTable
from ringlog_lab.ess import published
from ringlog_lab.ess.retrieval import Retrieved
from ringlog_lab.ess.scenarios import SCENARIOS
from ringlog_lab.ess.storage import IOC, Written
from ringlog_lab.stage import Stage

_HOUR = 3600
_MBIT = 8.0
_SHOWN = ("AAPS-0120", "AAPS-0280", "AAPS-0300", "AAPS-0440", "AAPS-0480", "AAPS-0640")
"""Those of the summary: the last without losses there, and the first with them."""
_READ = ("AAPS-0020", "AAPS-0120")
_METHOD = [
    "A frame is one update of one waveform. Small scenarios come from a real soft IOC, whose waveform "
    "records go over Channel Access into `ringlog load --source ca`, where these keep up; the others from "
    "a program in C (tdsload) that writes over TDS 7.4, up to 8 connections, and waits for each answer, "
    "which comes after the commit. The table says which. Only the first point of a waveform changes, as in "
    "the paper, by one with each update; the others are those of a noisy 16-bit digitiser.",
    "A frame that an IOC made and that is not in the log shows as a gap in these numbers; the producer is "
    "then the IOC and the writers together.",
    "Waveforms of one update are columns of tables: up to 100 in a row, and up to 4 MB. A frame that is not "
    "acknowledged was not made: a producer that waits for its answer falls behind its rate instead of "
    "dropping frames. Frames dropped are, as in the paper, those asked for that are not stored, made or not. "
    "Those made are all looked for in the log, of every waveform, and the points of the first ones are "
    "compared.",
    "CPU of the server is of gateway, PostgreSQL and HTTP together, in cores; memory is its proportional "
    "set size at most. Producers, clients and server share one machine: there is no network between them.",
    "Retrieval asks for the same frames again and again for the time of a load, each thread one request "
    "after another; the paper's threads asked once for the frames of an hour. Frames a second compare the "
    "two.",
]


def outcome(
    stage: Stage,
    written: Sequence[Written],
    impossible: Mapping[str, str],
    got: Sequence[Retrieved],
    disk: float,
) -> Outcome:
    """The experiment's outcome."""
    # updates dropped by an IOC were never acknowledged
    counted = [
        Counted(
            f"frames of {one.scenario.name}",
            one.found if one.source == IOC else one.acknowledged,
            one.found,
            one.altered,
        )
        for one in written
    ]
    scale = (
        f"Each load lasted {in_words(round(stage.seconds, 2))} instead of 60 min, with all of its waveforms "
        f"at full length and rate; {len(written)} scenarios were stored. The disk takes {disk / 1e6:,.0f} "
        "MB/s, each MiB durable before the next."
    )
    return stage.finish(
        "Waveforms of the Archiver Appliance (papers/003)",
        published.SOURCE,
        scale,
        counted,
        [*_figures(written, impossible, got)],
        [*_sections(written, impossible, got)],
        _METHOD,
        [*_points(written, got), Point("disk", "disk", 0.0, disk / 1e6, 0, 0.0, 0.0)],
    )


def _figures(
    written: Sequence[Written], impossible: Mapping[str, str], got: Sequence[Retrieved]
) -> Iterator[Figure]:
    for one in written:
        name = one.scenario.name
        there = published.TABLE_2.get(name)
        shown = there is not None and name in _SHOWN
        remark = f"{in_words(round(one.seconds, 1))}; no network between; {one.source}"
        if one.made < 0.99:
            remark += f"; {100 * one.made:.3g} % of the frames asked for could be made here"
        if one.remark:
            remark += f"; {one.remark}"
        yield Figure(
            f"{name} stored",
            f"{name}: stored",
            "MB/s",
            one.megabytes,
            there.network / _MBIT if there and shown else None,
            different=remark,
        )
        yield Figure(
            f"{name} dropped",
            f"{name}: frames dropped",
            "%",
            100 * one.missing,
            there.dropped if there and shown else None,
            different="of the frames asked for, all counted; there a sample",
        )
        yield Figure(f"{name} cpu", f"{name}: CPU of the server", "cores", one.used.server)
    for name, why in impossible.items():
        if name in _SHOWN:
            there = published.TABLE_2[name]
            yield Figure(
                f"{name} stored", f"{name}: stored", "MB/s", None, there.network / _MBIT, different=why
            )
    for each in got:
        if each.form == "csv":
            gone = published.TABLE_3[each.scenario.name].get(each.threads)
            paper = None
            if gone and each.scenario.name in _READ:
                paper = _HOUR * each.scenario.rate * each.threads / gone[1]
            yield Figure(
                f"{each.scenario.name} csv {each.threads}",
                f"{each.scenario.name}: retrieved as CSV, {_threads(each.threads)}",
                "frames/s",
                each.rate,
                paper,
                different="clients on the same machine; there 1 Gb/s between",
            )


def _sections(
    written: Sequence[Written], impossible: Mapping[str, str], got: Sequence[Retrieved]
) -> Iterator[Section]:
    if written or impossible:
        yield _storage(written, impossible)
    if got:
        yield _retrieval(got)


def _storage(written: Sequence[Written], impossible: Mapping[str, str]) -> Section:
    rows = []
    for one in written:
        there = published.TABLE_2.get(one.scenario.name)
        rows.append(
            [
                f"{one.scenario.name}, {one.source}",
                amount(one.scenario.megabytes),
                f"{100 * one.made:.3g} %",
                amount(one.megabytes),
                f"{one.acknowledged:,}",
                f"{one.found:,}",
                f"{one.used.server:.2f}",
                f"{one.used.memory / 1e9:.2f}",
                f"{one.used.clients:.2f}",
                f"{one.used.client_memory / 1e9:.2f}",
                f"{one.disk / max(1, one.acknowledged * one.scenario.frame):.2f}",
                MISSING
                if one.median is None or one.longest is None
                else f"{1e3 * one.median:,.1f} / {1e3 * one.longest:,.0f}",
                f"{there.network / _MBIT:,.1f}" if there else "did not run",
                f"{there.dropped:g} %" if there else MISSING,
            ]
        )
    headings = [
        *("", "asked, MB/s", "made", "stored, MB/s", "frames made", "frames in the log"),
        *("server, cores", "server, GB", "producer, cores", "producer, GB", "disk ÷ payload"),
        *("call, median / longest, ms", "paper: MB/s", "paper: dropped"),
    ]
    tables = [TextTable("Storage, beside table 2", headings, rows)]
    if impossible:
        reasons = [[name, why] for name, why in impossible.items()]
        tables.append(
            TextTable("What this machine cannot produce", ["", "why it was not tried"], reasons, remarks=True)
        )
    made = [(one.scenario.megabytes, one.megabytes) for one in written]
    papers = [(SCENARIOS[name].megabytes, row.network / _MBIT) for name, row in published.TABLE_2.items()]
    plot = Plot(
        "storage",
        "Payload stored against payload asked for; the paper's is its network traffic.",
        "asked for, MB/s",
        "stored, MB/s",
        [Line("here", made, joined=False), Line("the paper", papers, joined=False, paper=True)],
        True,
        True,
    )
    lost = sum(one.dropped for one in written)
    text = (
        f"{sum(one.acknowledged for one in written):,} frames were made, "
        f"{sum(one.found for one in written):,} are in the log: {lost:,} were dropped."
    )
    return Section("Storage (table 2)", [text], tables, [plot])


def _retrieval(got: Sequence[Retrieved]) -> Section:
    rows = []
    for one in got:
        there = published.TABLE_3[one.scenario.name].get(one.threads)
        paper = MISSING
        if there:
            paper = amount(_HOUR * one.scenario.rate * one.threads / there[1])
        rows.append(
            [
                f"{one.scenario.name}, {one.form}, {_threads(one.threads)}",
                f"{one.requests:,}",
                f"{one.answer:.3g}",
                amount(one.megabytes),
                amount(one.rate),
                paper if one.form == "csv" else MISSING,
                f"{one.used.server:.2f}",
                f"{one.used.memory / 1e9:.2f}",
                f"{one.client:.2f}",
                f"{one.refused:,}",
            ]
        )
    headings = [
        *("", "answers", "seconds an answer", "MB/s", "frames/s", "paper: frames/s"),
        *("server, cores", "server, GB", "clients, cores", "too busy"),
    ]
    lines = []
    for form in dict.fromkeys(one.form for one in got):
        threads = dict.fromkeys(one.threads for one in got)
        speeds = [
            (number, [one.megabytes for one in got if (one.form, one.threads) == (form, number)])
            for number in threads
        ]
        lines.append(Line(form, [(number, sum(each) / len(each)) for number, each in speeds]))
    plot = Plot(
        "retrieval",
        "Retrieval: MB/s of answers against threads, mean of the scenarios.",
        "threads",
        "MB/s",
        lines,
        True,
    )
    return Section("Retrieval (table 3)", (), [TextTable("Retrieval over HTTP", headings, rows)], [plot])


def _threads(number: int) -> str:
    return f"{number} thread" + "s" * (number > 1)


def _points(written: Sequence[Written], got: Sequence[Retrieved]) -> Iterator[Point]:
    for one in written:
        payload = max(1, one.acknowledged * one.scenario.frame)
        yield Point(
            one.scenario.name,
            "storage",
            one.measured / one.seconds,
            one.megabytes,
            0,
            one.used.server,
            one.used.memory,
            one.disk / payload,
            one.used.wal / max(1, one.measured * one.scenario.frame),
        )
    for each in got:
        name = f"{each.scenario.name} {each.form}"
        rate = each.requests / each.used.seconds
        used = each.used
        yield Point(name, "retrieval", rate, each.megabytes, each.threads, used.server, used.memory)
