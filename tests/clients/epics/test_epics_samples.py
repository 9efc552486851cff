"""Tables of samples from a soft IOC, compared with the samples that another client of it receives."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from clocks import faketime
from iocs import PUTTING, Ioc, Programs, Source

from ringlog_lab.epics import own_ports
from servers import RINGLOG, RunningServer, free_port, serving
from waiting import wait_until

FACILITY = Path(__file__).with_name("epics_samples.toml").read_text()
FIRST, LATER = range(1, 151), range(151, 201)
ALARM = 'field(HIHI, "5") field(HHSV, "MAJOR")'

HEARING = """
import json, queue, sys
from p4p.client.thread import Context

heard = queue.SimpleQueue()
context = Context("pva", nt=False)
request = "record[queueSize=100]field()"
monitors = [
    context.monitor(name, lambda value, name=name: heard.put((name, value)), request=request)
    for name in sys.argv[1:]
]
for monitor in monitors:
    # p4p loses a call that comes before monitor() has returned, and makes no other until the update is read
    monitor._event()
while True:
    name, value = heard.get()
    moment = value.timeStamp.secondsPastEpoch * 10**9 + value.timeStamp.nanoseconds
    print(json.dumps([name, moment, value.value, value.alarm.severity]), flush=True)
"""


@pytest.fixture(scope="module")
def ioc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ioc]:
    database = tmp_path_factory.mktemp("ioc") / "samples.db"
    counting = 'field(SCAN, ".5 second") field(INPA, "{0}.VAL") field(CALC, "A+1")'
    database.write_text(
        "".join(
            f'record(calc, "{name}") {{ {counting.format(name)} {ALARM} }}\n'
            for name in ("S:FAST", *(f"S:{number}" for number in [*FIRST, *LATER]))
        )
        + 'record(ai, "S:NEVER") { field(VAL, "7") }\n'
        + 'record(calc, "S:NAN") { field(SCAN, ".5 second") field(CALC, "NAN") }\n'
        + 'record(mbbi, "S:MODE") { field(ZRST, "OFF") field(ONST, "ON") field(VAL, "1")'
        + ' field(PINI, "YES") }\n'
        + 'record(ao, "S:HELD") { field(VAL, "3") field(PINI, "YES") field(ADEL, "10") }\n'
        + 'record(waveform, "S:WAVE") { field(FTVL, "LONG") field(NELM, "8") field(EGU, "V") }\n'
        + 'record(waveform, "S:LONG") { field(FTVL, "DOUBLE") field(NELM, "99") }\n'
        + 'record(waveform, "S:TEXTS") { field(FTVL, "STRING") field(NELM, "2") }\n'
        + 'record(ai, "S:TOLD") { field(VAL, "4") field(PINI, "YES") field(EGU, "mbar/minute")'
        + ' field(DESC, "a gauge") field(PREC, "2") field(HIGH, "7") field(HSV, "MINOR")'
        + ' field(LOLO, "-9") field(LLSV, "MAJOR") field(HIHI, "9") field(HHSV, "MAJOR") }\n'
    )
    ioc = Ioc(database, own_ports(free_port))
    ioc.start()
    yield ioc
    ioc.kill()


@pytest.fixture(scope="module")
def wrong(ioc: Ioc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ioc]:
    """An IOC whose clock is two hours ahead."""
    database = tmp_path_factory.mktemp("ahead") / "ahead.db"
    database.write_text('record(calc, "S:AHEAD") { field(SCAN, ".5 second") field(CALC, "VAL+1") }\n')
    ports = {
        "EPICS_CA_SERVER_PORT": str(free_port()),
        "FAKETIME": "+2h",
        "EPICS_PVAS_SERVER_PORT": str(free_port()),
    }
    wrong = Ioc(database, ioc.environment | ports, preload=faketime())
    wrong.start()
    yield wrong
    wrong.kill()


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[RunningServer]:
    facility = temporary_directory / "samples.toml"
    facility.write_text(FACILITY)
    with serving(temporary_directory / "samples", facility=facility) as running:
        yield running


@pytest.fixture
def admin(own: RunningServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(own.dsn, autocommit=True) as connection:
        yield connection


def add(admin: psycopg.Connection, *names: str, table: str = "pvs", **more: str) -> None:
    """Adds signals, with more of add_signal's arguments."""
    given = "".join(f", {argument} => %s" for argument in more)
    query = f"select ringlog.add_signal(%s, each{given}) from unnest(%s::text[]) as each"
    admin.execute(query.encode(), [table, *more.values(), [*names]])


def state(admin: psycopg.Connection, name: str) -> dict[str, Any]:
    cursor = admin.execute("select * from ringlog.signal_states(%s)", [name])
    assert cursor.description is not None
    (row,) = cursor.fetchall()
    return dict(zip((column.name for column in cursor.description), row, strict=True))


Sample = tuple[int, float, int]
"""time in nanoseconds, value, severity"""


def heard_by(programs: Programs) -> dict[str, set[Sample]]:
    """The samples that the other client has written so far, without a last line that is incomplete."""
    found: dict[str, set[Sample]] = {}
    for line in (programs.folder / "heard").read_text().splitlines(keepends=True):
        if line.startswith("[") and line.endswith("\n"):
            name, *sample = json.loads(line)
            found.setdefault(name, set()).add((sample[0], sample[1], sample[2]))
    return found


def are_equal(heard: Iterable[Sample], stored: Iterable[Sample], killed: int) -> None:
    """While both clients were connected: they find the IOC, killed at that time, again at different times."""
    for is_new in (False, True):
        one = {each for each in heard if (each[0] > killed) is is_new}
        other = {each for each in stored if (each[0] > killed) is is_new}
        begin, end = max(min(one), min(other)), min(max(one), max(other))
        assert {each for each in one if begin <= each <= end} == {
            each for each in other if begin <= each <= end
        }


def test_every_sample_is_stored_once(
    ioc: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """Signals are added while it runs, and the IOC is restarted."""
    names = [f"S:{number}" for number in [*FIRST, *LATER]]
    loader = programs.load(own, "ca", "pvs,words", "--processes", "1")
    programs.start("heard", sys.executable, "-c", HEARING, *names)

    def since(mark: Any, of: list[str]) -> bool:
        """Whether each of these signals has two samples since a moment."""
        assert loader.is_running()
        query = (
            "select count(*) from (select from log.pvs where signal = any(%s) and value is not null"
            " and time > %s group by signal having count(*) > 1) as each"
        )
        return admin.execute(query, [of, mark]).fetchone() == (len(of),)

    def now() -> Any:
        row = admin.execute("select clock_timestamp()").fetchone()
        assert row is not None
        return row[0]

    def heard_since(moment: int) -> bool:
        found = heard_by(programs)
        return all(any(each[0] > moment for each in found.get(name, ())) for name in names)

    add(admin, *names[: len(FIRST)])
    wait_until(lambda: since("-infinity", names[: len(FIRST)]), loader.output)
    add(admin, *names[len(FIRST) :])
    wait_until(lambda: since("-infinity", names), loader.output)
    wait_until(lambda: heard_since(0))
    ioc.kill()
    killed = time.time_ns()
    wait_until(
        lambda: (
            admin.execute(
                "select count(distinct signal) from log.pvs where value is null and signal = any(%s)", [names]
            ).fetchone()
            == (len(names),)
        )
    )
    assert state(admin, "S:1")["value"] is None
    ioc.start()
    again = now()
    wait_until(lambda: since(again, names), loader.output)
    wait_until(lambda: heard_since(killed))
    admin.execute("select ringlog.pause_signal('S:1')")
    wait_until(lambda: state(admin, "S:1")["silent"] == "paused")
    later = now()
    wait_until(lambda: since(later, names[1:]))
    admin.execute("select ringlog.retire_signal('S:2')")
    admin.execute("select ringlog.rename_signal('S:3', 'third')")
    renamed = now()
    wait_until(lambda: since(renamed, ["third", "S:4"]))
    programs.stop()

    stored: dict[str, list[Sample]] = {}
    for name, *sample in admin.execute(
        "select signal, extract(epoch from time)::numeric * 1000000000 + nanoseconds, value, severity"
        " from log.pvs where value is not null order by 1, 2"
    ):
        stored.setdefault("S:3" if name == "third" else name, []).append((int(sample[0]), *sample[1:]))
    received = heard_by(programs)
    for name in names:
        found = stored[name]
        assert len(found) == len(set(found)) == len({moment for moment, *_ in found})
        # a signal that was paused or retired has fewer
        if name not in ("S:1", "S:2"):
            are_equal(received[name], found, killed)
    assert 2 in {severity for samples in stored.values() for *_, severity in samples}
    # the ledger counts samples, and misses none
    losses = "select sum(produced), sum(in_log), sum(missing), sum(waiting), sum(refused)"
    losses += " from ringlog.losses(of_table => 'pvs')"
    produced, in_log, *lost = admin.execute(losses).fetchone() or ()
    assert lost == [0, 0, 0]
    assert (in_log,) == admin.execute("select (select count(*) from log.pvs)").fetchone()
    assert in_log <= produced < in_log + 20


@pytest.mark.long
def test_queues_of_pv_access_lose_nothing(
    own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """Counting records whose updates are read several at a time."""
    names = [f"counted:{number}" for number in FIRST]
    for name in names:
        add(admin, name, table="modes", address=name.replace("counted", "S"))
    loader = programs.load(own, "pva", "modes")

    def stored() -> list[list[int]]:
        assert loader.is_running()
        query = "select array_agg(value order by time, nanoseconds) from log.modes"
        query += " where signal = any(%s) and value is not null group by signal"
        return [values for (values,) in admin.execute(query.encode(), [names])]

    wait_until(lambda: len(stored()) == len(names) and min(map(len, stored())) >= 10, loader.output)
    for values in stored():
        assert values == [*range(values[0], values[0] + len(values))]


@pytest.mark.parametrize("source", ["ca", pytest.param("pva", marks=pytest.mark.long)])
def test_policies_by_record_type(
    source: str, ioc: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """Records that count twice a second are scanned, until the policy changes."""
    facility = own.data.with_name("samples.toml")
    names = [f"{source}:{each}" for each in ("calc", "held", "named")]
    for name, address, policy in zip(names, ("S:FAST", "S:HELD", "S:2.VAL"), ("", "", "none"), strict=True):
        add(admin, name, table="scanned", address=address, policy=policy)
    loader = programs.load(own, source, "scanned")
    output = loader.output

    def policies() -> list[tuple[Any, ...]]:
        assert loader.is_running()
        query = "select policy from ringlog.list_signals() where signal = any(%s) order by signal"
        return admin.execute(query, [names]).fetchall()

    wait_until(lambda: policies() == [("slow",), (None,), (None,)], output)

    def periods() -> list[float]:
        """Seconds between samples of the first signal, in whole periods."""
        query = "select extract(epoch from time)::float8 from log.scanned where signal = %s order by time"
        times = [moment // 2.0 for (moment,) in admin.execute(query, [names[0]])]
        return [later - before for before, later in pairwise(times)]

    wait_until(lambda: len(periods()) >= 3, output)
    # after the first one, which is taken at once
    assert 0.0 not in periods()[1:]
    event = "S:2.VAL: there is no policy 'none': every event is taken"
    events = "select message from ringlog.event where kind = 'policy'"
    wait_until(lambda: (event,) in admin.execute(events).fetchall(), output)
    facility.write_text(FACILITY.replace("calc", "mbbi"))
    reloaded = subprocess.run([RINGLOG, "reload", "--spool", programs.folder / "spool"], capture_output=True)
    assert b"scanned: policies slow instead of slow" in reloaded.stdout, reloaded
    wait_until(lambda: policies() == [(None,)] * 3, output)
    wait_until(lambda: 0.0 in periods()[-3:], output)
    facility.write_text(FACILITY)


@pytest.mark.parametrize("source", ["ca", pytest.param("pva", marks=pytest.mark.long)])
def test_properties_of_the_iocs_records(
    source: str, ioc: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    told, mode = f"{source}:told", f"{source}:mode"
    add(admin, told, table="scanned", description="ours", address="S:TOLD")
    add(admin, mode, table="modes", address="S:MODE")
    loader = programs.load(own, source, "scanned,modes")
    properties = "unit, description, limit_low, limit_high, alarm_low, alarm_high, decimals"

    def has(query: str, *wanted: Any) -> bool:
        assert loader.is_running()
        return admin.execute(query.encode(), [*wanted[:1]]).fetchall() == [wanted[1:]]

    # the archivist's description remains
    states = "select states from ringlog.describe_signal(%s)"
    described = f"select {properties} from ringlog.describe_signal(%s)"
    wanted = ("mbar/minute", "ours", None, 7.0, -9.0, 9.0, 2)
    wait_until(lambda: has(described, told, *wanted), loader.output)
    if source == "ca":
        # the source reports a change while it is connected
        put(programs, "S:TOLD.EGU='Pa'", "S:TOLD.HIGH=6", "S:MODE.ZRST='STOP'")
        wait_until(lambda: has(described, told, "Pa", "ours", None, 6.0, *wanted[4:]), loader.output)
        wait_until(lambda: has(states, mode, '{"0": "STOP", "1": "ON"}'), loader.output)
        put(programs, "S:TOLD.EGU='mbar/minute'", "S:TOLD.HIGH=7", "S:MODE.ZRST='OFF'")
        wait_until(lambda: has(described, told, *wanted), loader.output)
    wait_until(lambda: has(states, mode, '{"0": "OFF", "1": "ON"}'), loader.output)
    # a loss that is noticed after the new IOC has begun is later than its first value: that is stored twice
    is_lost = "select count(*) filter (where value is null) from log.modes where signal = %s"
    with other_database(ioc, '"ON"', '"BEAM"', lambda: has(is_lost, mode, 1)):
        wait_until(lambda: has(states, mode, '{"0": "OFF", "1": "BEAM"}'), loader.output)
        count = "select count(*) from log.modes where signal = %s"
        wait_until(lambda: has(count, mode, 3), loader.output)
    # each value has the name of its time
    named = admin.execute(
        "select value, was.states::json ->> value::text from log.modes"
        " cross join lateral ringlog.describe_signal(log.modes.signal, time) as was"
        " where log.modes.signal = %s order by time limit 3",
        [mode],
    )
    assert named.fetchall() == [(1, "ON"), (None, None), (1, "BEAM")]
    changes = admin.execute("select change, login from ringlog.signal_change where signal = %s", [mode])
    assert ("source", "writer") in changes.fetchall()


@pytest.mark.parametrize("source", ["ca", "pva"])
def test_waveforms(
    source: str, ioc: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """Waveforms of each length are stored as sent, and a loss; one that is too long, or of texts, is
    reported."""
    put(programs, "S:WAVE=[0]", f"S:LONG={[0.5] * 9}", "S:TEXTS=['a', 'b']")
    addresses = {f"{source}:{name}": f"S:{name}" for name in ("WAVE", "LONG", "TEXTS", "HELD")}
    for name, address in addresses.items():
        add(admin, name, table="traces", address=address)
    loader = programs.load(own, source, "traces")
    wave = f"{source}:WAVE"

    def stored() -> list[tuple[Any, ...]]:
        assert loader.is_running()
        query = "select value, severity from log.traces where signal = %s order by time, nanoseconds"
        return admin.execute(query, [wave]).fetchall()

    wait_until(lambda: stored() == [([0.0], 0)], loader.output)
    sent = [[1, 2, 3], [5] * 8, [7], []]
    for number, points in enumerate(sent, 2):
        put(programs, f"S:WAVE={points}")
        wait_until(lambda number=number: len(stored()) == number, loader.output)
    assert [value for value, _ in stored()] == [[0.0], *([float(each) for each in points] for points in sent)]
    problems = {"LONG": "9 points are more than the 8 of the facility file", "TEXTS": "must be real number"}
    # Channel Access does not distinguish a number from an array of one
    problems |= {"HELD": "is not a waveform"} if source == "pva" else {}
    for name, problem in problems.items():
        wait_until(
            lambda name=name, problem=problem: problem in (state(admin, f"{source}:{name}")["silent"] or "")
        )
    unit = "select unit from ringlog.describe_signal(%s)"
    wait_until(lambda: admin.execute(unit, [wave]).fetchone() == ("V",), loader.output)
    assert admin.execute("select value from ringlog.get_waveform(%s)", [wave]).fetchone() == ([],)
    ioc.kill()
    # without a value, and with the severity INVALID
    wait_until(lambda: stored()[-1] == (None, 3), loader.output)
    ioc.start()
    assert "refused" not in loader.output()


@pytest.mark.parametrize("source", ["ca", "pva"])
def test_an_undefined_value_is_no_reading(
    source: str, ioc: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """Records with the alarm UDF, processed or not."""
    names = {f"{source}:{name}": f"S:{name}" for name in ("NAN", "NEVER")}
    for name, address in names.items():
        add(admin, name, table="scanned", address=address)
    loader = programs.load(own, source, "scanned")
    query = "select distinct signal, value, severity, status from log.scanned where signal = any(%s)"
    nan, never = names
    stored = lambda: admin.execute(query, [[*names]]).fetchall()  # noqa: E731
    wait_until(lambda: stored() == [(nan, None, 3, 17)], lambda: (stored(), loader.output()))
    wait_until(lambda: "it was never processed" in (state(admin, never)["silent"] or ""))
    assert len(stored()) == 1


def test_nothing_of_a_lost_server_is_kept(
    ioc: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """The first update of a new server does not mark the alarm, which has its default again."""
    add(admin, "P:ALARM")

    def stored() -> list[tuple[Any, ...]]:
        query = (
            "select value, severity, status from log.pvs where signal = 'P:ALARM' order by time, nanoseconds"
        )
        return admin.execute(query).fetchall()

    loader = programs.load(own, "pva", "pvs")
    with Source(ioc.environment, ("P:ALARM", "d", 15.0, 0, 2)):
        wait_until(stored, loader.output)
    wait_until(lambda: len(stored()) == 2, loader.output)
    with Source(ioc.environment, ("P:ALARM", "d", 15.0, 0, 0)):
        wait_until(lambda: len(stored()) >= 3, loader.output)
    assert stored()[:3] == [(15.0, 2, 101), (None, 3, 0), (15.0, 0, 0)]


def test_every_value_after_an_infinite_one_is_stored(
    ioc: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """A deadband relative to infinity contains no number."""
    add(admin, "P:BAND", deadband="0.5 %")
    values = [5.0, math.inf, 6.0, 7.0, 100.0, -3.0, math.nan, 8.0, 9.0]
    query = "select value from log.pvs where signal = 'P:BAND' order by time, nanoseconds"
    stored = lambda: [value for (value,) in admin.execute(query)]  # noqa: E731
    with Source(ioc.environment, ("P:BAND", "d", values[0], 0, 0)) as posting:
        loader = programs.load(own, "pva", "pvs")
        wait_until(stored, loader.output)
        for value in values[1:]:
            posting.post(("P:BAND", "d", value, 0, 0))
        wait_until(lambda: stored()[-1:] == values[-1:], lambda: (stored(), loader.output()))
        assert str(stored()) == str(values)


@contextmanager
def other_database(ioc: Ioc, before: str, after: str, is_lost: Callable[[], bool]) -> Iterator[None]:
    """The IOC is restarted with another text in its database, and at the end with the former one."""
    database = ioc.database.read_text()
    ioc.kill()
    wait_until(is_lost)
    ioc.database.write_text(database.replace(before, after))
    ioc.start()
    try:
        yield
    finally:
        ioc.kill()
        ioc.database.write_text(database)
        ioc.start()


def put(programs: Programs, *values: str) -> None:
    """Puts values to PVs, `name=value`, by PV Access."""
    environment = os.environ | programs.environment
    subprocess.run([sys.executable, "-c", PUTTING, *values], env=environment, check=True)


@pytest.mark.long
@pytest.mark.parametrize("source", ["ca", "pva"])
def test_bad_manners(
    source: str, ioc: Ioc, wrong: Ioc, own: RunningServer, admin: psycopg.Connection, programs: Programs
) -> None:
    """A clock two hours ahead, a record without a time, a missing one; a label; ADEL."""
    servers = f"127.0.0.1 127.0.0.1:{wrong.environment['EPICS_CA_SERVER_PORT']}"
    pva = f"127.0.0.1 127.0.0.1:{wrong.environment['EPICS_PVAS_SERVER_PORT']}"
    programs.environment = ioc.environment | {"EPICS_CA_ADDR_LIST": servers, "EPICS_PVA_NAME_SERVERS": pva}
    known = {name for (name,) in admin.execute("select signal from ringlog.list_signals()")}
    for name in ("S:AHEAD", "S:NEVER", "S:NOTHING"):
        if name not in known:
            add(admin, name)
    if "S:HELD" not in known:
        add(admin, "S:HELD", deadband="ADEL")
    words = "select value from log.words order by time desc"
    before = len(admin.execute(words).fetchall())
    (began,) = admin.execute("select clock_timestamp()").fetchone() or (None,)
    loader = programs.load(own, source, "pvs,words")

    def has(name: str, **wanted: Any) -> bool:
        assert loader.is_running()
        found = state(admin, name)
        return all(words in str(found[key]) for key, words in wanted.items())

    def come(name: str, **wanted: Any) -> None:
        wait_until(lambda: has(name, **wanted), lambda: (state(admin, name), loader.output()))

    come("S:HELD", connected="True", value="3")
    come("S:AHEAD", connected="True", silent="s ahead: its samples are not stored")
    come("S:NEVER", connected="True", silent="it was never processed")
    come("S:NOTHING", connected="False", silent="not found since")
    come("mode", connected="True", value="ON")
    put(programs, "S:MODE=0", "S:HELD=4", "S:HELD=20", "S:MODE=1")
    come("S:HELD", value="20")
    wait_until(lambda: len(admin.execute(words).fetchall()) >= before + 2, loader.output)
    put(programs, "S:HELD=3")
    come("S:HELD", value="3")
    programs.stop()
    assert admin.execute(
        "select count(*) from log.pvs where signal in ('S:AHEAD', 'S:NEVER') and value is not null"
    ).fetchone() == (0,)
    held = "select value from log.pvs where signal = 'S:HELD' and time > %s"
    # PV Access has no ADEL
    assert ((4.0,) in admin.execute(held, [began]).fetchall()) is (source == "pva")
    assert admin.execute(words).fetchmany(2) == [("ON",), ("OFF",)]
    query = "select kind, split_part(message, ': ', 1) from ringlog.event where table_name = 'pvs'"
    assert {*admin.execute(query)} >= {
        ("clock", "S:AHEAD"),
        ("clock", "S:NEVER"),
        ("disconnected", "S:NOTHING"),
    }
    assert "its writer has ended" in state(admin, "S:HELD")["silent"]
