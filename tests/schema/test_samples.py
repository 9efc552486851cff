"""Tables of samples: put_<table> and put_<table>_batch store each sample once."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors

from ringlog.schema.access import rights
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Retention
from ringlog.schema.installing.install import InstallRefused, difference, install
from ringlog.schema.relations.partitions import maintain
from waiting import PATIENCE

from .conftest import NS0, T0, Connect, Traces, Vacuum, at, rows, vacuum


def test_a_sample_is_read_back(vac: Vacuum) -> None:
    assert vac.put("gauge:1", T0, 0.5, 2, 4) == 0
    assert vac.rows('select signal, "time", value, severity, status from log.vac') == [
        ("gauge:1", T0, 0.5, 2, 4)
    ]
    assert vac.rows("select * from ringlog.get_vac('gauge:1')") == [(T0, 0, 0.5, 2, 4)]
    assert vac.rows("select * from ringlog.get_vac_at()") == [("gauge:1", T0, 0, 0.5, 2, 4)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", float("nan")),
        ("double", None),
        ("real", 0.1),
        ("int", -7),
        ("smallint", 3),
        ("bigint", 2**62),
        ("bit", True),
        ("text", "weiß, 'x'"),
        ("double[]", [0.5, float("nan"), -1.0]),
        ("real[]", []),
        ("int[]", None),
        ("bit[]", [True, False]),
    ],
)
def test_values_of_each_type(engine: sa.Engine, connect: Connect, kind: str, value: object) -> None:
    install(engine, vacuum(kind))
    connection = connect()
    for _ in range(2):
        rows(connection, f"select ringlog.put_vac('gauge:1', %s, %s::{ColumnType.of(kind).sql})", T0, value)
    ((stored,),) = rows(connection, "select value::text from log.vac")
    ((wanted,),) = rows(connection, f"select (%s::{ColumnType.of(kind).sql})::text", value)
    assert stored == wanted


def test_many_samples_in_one_call_are_stored_once(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    call = ([one, two, one], [NS0 + 7, NS0 + 1, NS0 + 2], [1.0, 2.0, 3.0], [0, 1, 0])
    for _ in range(3):
        assert vac.batch(*call) == 0
    assert vac.samples("gauge:1") == [(2, 3.0), (7, 1.0)]
    assert vac.samples("gauge:2") == [(1, 2.0)]
    assert vac.value("select count(*) from weeks.vac") == 2
    # one that has some of these and another
    assert vac.batch([one, one, two], [NS0 + 2, NS0 + 5, NS0 + 1], [3.0, 4.0, 2.0], [0, 0, 1]) == 0
    assert vac.samples("gauge:1") == [(2, 3.0), (5, 4.0), (7, 1.0)]


def test_another_sample_of_the_same_time_is_refused_and_nothing_is_stored(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    vac.batch([one], [NS0], [1.0])
    words = "put_vac_batch: the log has another sample of signal 'gauge:1' at 2026-03-02 12:00:00"
    for other in (
        ([two, one], [NS0, NS0], [2.0, 1.5], None),
        ([two, one], [NS0, NS0], [2.0, 1.0], [0, 1]),
        ([two, one, one], [NS0, NS0 + 9, NS0 + 9], [2.0, 1.0, 2.0], None),
    ):
        with pytest.raises(errors.UniqueViolation, match=words):
            vac.batch(*other)
    assert vac.samples("gauge:2") == []
    assert vac.samples("gauge:1") == [(0, 1.0)]


@pytest.mark.parametrize(
    ("signals", "times", "values", "error"),
    [
        ([1], [NS0, NS0], [1.0], errors.ArraySubscriptError),
        ([None], [NS0], [1.0], errors.NotNullViolation),
        ([1], [None], [1.0], errors.NotNullViolation),
        ([10**9], [NS0], [1.0], errors.UndefinedObject),
        ([1], [-1], [1.0], errors.DatetimeFieldOverflow),
    ],
)
def test_wrong_calls_are_errors(
    vac: Vacuum, signals: list[Any], times: list[Any], values: list[float], error: type[Exception]
) -> None:
    signals = [vac.number("gauge:1") if each == 1 else each for each in signals]
    with pytest.raises(error):
        vac.batch(signals, times, values)
    for wrong in (None, "infinity", "1900-01-01", "3000-01-01"):
        with pytest.raises((errors.NotNullViolation, errors.DatetimeFieldOverflow)):
            vac.put("gauge:1", wrong, 1.0)
    with pytest.raises(errors.UndefinedObject, match="table vac has no signal 'none'"):
        vac.put("none", T0, 1.0)
    assert vac.value("select count(*) from weeks.vac") == 0


def test_only_a_sample_of_a_time_ahead_is_dropped_and_named(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    ahead = int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1e9)
    notices: list[str] = []
    vac.connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    vac.batch([one, two, one], [NS0, ahead, ahead], [1.0, 2.0, 3.0])
    assert vac.value("select count(*) from log.vac") == 1
    assert vac.rows("select kind, rows from ringlog.event") == [("clock", 2)]
    assert "put_vac_batch: 2 samples are not stored, as one of signal 'gauge:1'" in notices[0]


def test_packed_arrays_mark_missing_readings(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    put = "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s, nulls => %s::integer[])"
    for _ in range(2):
        vac.rows(put, [one, one], [NS0, NS0 + 1], [1.0, 0.0], [2])
    assert vac.samples() == [(0, 1.0), (1, None)]
    with pytest.raises(errors.ArraySubscriptError, match="nulls has places of samples, not 3"):
        vac.rows(put, [one, one], [NS0, NS0 + 1], [1.0, 0.0], [3])


def test_a_repeat_after_merging_is_stored_once(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    for each in range(5):
        vac.batch([one], [NS0 + each * 10**9], [float(each)])
    assert vac.merge() == [1]
    for each in range(5):
        vac.batch([one], [NS0 + each * 10**9], [float(each)])
    assert vac.value("select count(*) from weeks.vac") == 1
    with pytest.raises(errors.UniqueViolation):
        vac.batch([one], [NS0 + 10**9], [7.0])


def test_a_writer_that_lost_its_claim_stores_nothing(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    claim = "select epoch from ringlog.claim_writer('vac', %s, 'me', %s)"
    epoch = vac.value(claim, "spool 1", False)
    vac.batch([one], [NS0], [1.0], None, epoch)
    with pytest.raises(psycopg.DatabaseError, match="table vac is written by me"):
        vac.value(claim, "spool 2", False)
    later = vac.value(claim, "spool 2", True)
    with pytest.raises(psycopg.DatabaseError, match="another writer has taken the table over"):
        vac.batch([one], [NS0 + 1], [2.0], None, epoch)
    vac.batch([one], [NS0 + 1], [2.0], None, later)
    assert vac.samples() == [(0, 1.0), (1, 2.0)]


def test_two_calls_of_the_same_samples_at_once_are_stored_once(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    put = "select ringlog.put_vac_batch(array[%s], array[%s::bigint], array[1.0::float8])"
    first, second = vac.connect(), vac.connect()
    first.autocommit = False
    first.execute(put, [one, NS0])
    with ThreadPoolExecutor() as threads:
        # its answer was lost: it is sent again while the first call has not committed
        again = threads.submit(second.execute, put, [one, NS0])
        waiting = "select count(*) from pg_locks where not granted and relation = 'weeks.vac'::regclass"
        deadline = time.monotonic() + PATIENCE
        while not vac.value(waiting):
            assert time.monotonic() < deadline
        first.commit()
        again.result(PATIENCE)
    assert vac.samples() == [(0, 1.0)]


def test_permitted_and_refused_calls(vac: Vacuum, connect: Connect) -> None:
    vac.put("gauge:1", T0, 1.0)
    allowed = {
        "select ringlog.put_vac('gauge:1', '2026-03-02 12:00', 1)": "daq_writer",
        "select * from log.vac": "daq_reader",
        "select * from online.vac": "daq_reader",
        "select * from ringlog.get_vac('gauge:1')": "daq_reader",
        "select * from ringlog.get_signal('gauge:1')": "daq_reader",
        "select ringlog.pause_signal('gauge:2')": "signal_archivist",
        "select ringlog.add_signal('vac', 'another')": "signal_archivist",
        "select ringlog.change_signal('gauge:2', '{}')": "signal_archivist",
    }
    for statement, role in allowed.items():
        for each in ("daq_writer", "daq_reader", "signal_archivist"):
            connection = connect()
            connection.execute(f"set role {each}".encode())
            if each == role:
                connection.execute(statement.encode())
            else:
                with pytest.raises(errors.InsufficientPrivilege):
                    connection.execute(statement.encode())
    for role in ("daq_writer", "daq_reader", "signal_archivist"):
        connection = connect()
        connection.execute(f"set role {role}".encode())
        for statement in (
            "insert into ringlog.sample_signal (table_name, signal) values ('vac', 'x')",
            "delete from weeks.vac",
            "delete from ringlog.signal_change",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_a_login_with_rights_to_this_table_alone(vac: Vacuum, connect: Connect) -> None:
    vac.put("gauge:1", T0, 1.0)
    connection = vac.connection
    connection.execute("create role alone_with_vac login")
    try:
        connection.execute("grant daq_table_writer, daq_table_reader to alone_with_vac")
        both = (rights.TABLE_WRITER, rights.TABLE_READER)
        for role in both:
            rights.hold(connection, "alone_with_vac", role, rights.split(connection, ["vac"]))
        own = connect()
        own.execute("set role alone_with_vac")
        for statement in (
            "select ringlog.put_vac('gauge:1', '2026-03-02 12:00:01+00', 2)",
            "select * from ringlog.last_vac()",
            "select ringlog.claim_writer('vac', 'spool', 'me')",
        ):
            own.execute(statement.encode())
        for read in ("log.vac", "online.vac", "ringlog.get_signal('gauge:1')", "ringlog.get_vac('gauge:1')"):
            assert len(rows(own, f"select * from {read}")) == 2
        assert rows(own, "select value from ringlog.get_latest('gauge:1')") == [(2.0,)]
        assert rows(own, "select value from ringlog.get_vac_at()") == [(2.0,)]
    finally:
        rights.forget(connection, "alone_with_vac")
        connection.execute("drop role alone_with_vac")


# --- tables of samples: reading in SQL, housekeeping ---


def test_a_value_has_the_label_of_its_time(engine: sa.Engine, connect: Connect) -> None:
    install(engine, vacuum("smallint"))
    connection = connect()
    connection.execute("select ringlog.add_signal('vac', 'valve')")
    for states in ({"0": "closed", "1": "open"}, {"0": "shut", "1": "open"}, None):
        connection.execute("select ringlog.change_signal('valve', %s)", [json.dumps({"states": states})])
    begins = rows(connection, "select valid_from from ringlog.signal where signal = 'valve' order by 1")
    described = "select states from ringlog.describe_signal('valve', %s)"
    names = [
        rows(connection, described, at) for at in (T0, *(begin for (begin,) in begins), datetime.now(UTC))
    ]
    assert [json.loads(text or "{}").get("0") for ((text,),) in names] == [
        None,
        None,
        "closed",
        "shut",
        None,
        None,
    ]
    assert rows(connection, "select * from ringlog.describe_signal('none')") == []


def test_the_ring_shows_the_last_samples_of_each_signal(vac: Vacuum) -> None:
    vac.install(vacuum(ring=3))
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    vac.batch([one] * 5, [NS0 + each for each in range(5)], [float(each) for each in range(5)])
    vac.batch([one, two], [NS0 + 10, NS0 + 10], [10.0, 20.0])
    shown = vac.rows("select signal, value from online.vac order by signal, nanoseconds")
    assert shown == [("gauge:1", 3.0), ("gauge:1", 4.0), ("gauge:1", 10.0), ("gauge:2", 20.0)]


def test_samples_of_any_order_are_read_in_order_of_time_and_as_of_a_time(vac: Vacuum) -> None:
    """Compared with a dictionary: calls of any samples, before and after merging."""
    chance = random.Random(53)
    numbers = {vac.number(name): name for name in ("gauge:1", "gauge:2")}
    known: dict[tuple[int, int], float] = {}
    for call in range(60):
        sent = [
            (chance.choice([*numbers]), NS0 + chance.randrange(0, 4 * 3600) * 10**9 + chance.randrange(3))
            for _ in range(chance.randrange(1, 30))
        ]
        for key in sent:
            known.setdefault(key, chance.random())
        vac.batch([key[0] for key in sent], [key[1] for key in sent], [known[key] for key in sent])
        if call == 40:
            assert sum(vac.merge()) == 8
    for round_ in range(2):
        for number, name in numbers.items():
            own = sorted((time - NS0, value) for (of, time), value in known.items() if of == number)
            assert vac.samples(name) == own
            begin, end = 5000, 9000
            part = [value for time, value in own if begin * 10**9 <= time < end * 10**9]
            bounds = (T0 + timedelta(seconds=begin), T0 + timedelta(seconds=end))
            assert [
                value
                for (value,) in vac.rows("select value from ringlog.get_signal(%s, %s, %s)", name, *bounds)
            ] == part
            assert [
                value
                for (value,) in vac.rows("select value from ringlog.get_signal(%s, %s, %s, 3)", name, *bounds)
            ] == part[:3]
        for second in range(0, 4 * 3600, 700):
            newest = {
                name: max(
                    (time, value)
                    for (of, time), value in known.items()
                    if of == number and (time - NS0) // 1000 <= second * 10**6
                )[1]
                for number, name in numbers.items()
                if any(of == number and (time - NS0) // 1000 <= second * 10**6 for of, time in known)
            }
            found = vac.rows(
                "select signal, value from ringlog.get_vac_at(%s)", T0 + timedelta(seconds=second)
            )
            assert dict(found) == newest
        if round_ == 0:
            # the hours with late samples again
            assert vac.merge()
            assert vac.value("select count(*) from weeks.vac") == 8
            assert vac.merge() == []


def test_housekeeping_moves_samples_to_their_week_and_sets_old_weeks_aside(vac: Vacuum) -> None:
    vac.install(vacuum(clock_drift=timedelta(days=300)))
    later = datetime.now(UTC) + timedelta(weeks=8)
    vac.put("gauge:1", later, 1.0)
    assert vac.value("select count(*) from log.vac_default") == 1
    maintain(vac.engine, later)
    assert vac.value("select count(*) from log.vac_default") == 0
    assert vac.rows("select value from ringlog.get_signal('gauge:1')") == [(1.0,)]
    short = Retention(1, "week")
    vac.install(vacuum(clock_drift=timedelta(days=300), retention=short))
    report = maintain(vac.engine, later + timedelta(weeks=3))
    assert f"vac_{later:%Gw%V}" in report.set_aside
    assert vac.samples() == []


def test_a_shorter_retention_that_removes_weeks_is_refused(vac: Vacuum) -> None:
    before = vac.connection.execute("select date_trunc('week', now()) - interval '21 days'").fetchone()
    vac.put("gauge:1", before[0], 1.0)
    # a week of few samples that is not long over gets a partition
    maintain(vac.engine)
    short = vacuum(retention=Retention(1, "week"))
    with pytest.raises(InstallRefused, match="table vac: its log is kept for ever") as refused:
        difference(vac.engine, short)
    vac.connection.execute(refused.value.obstacles[0].sql.encode())
    vac.install(short)
    assert vac.samples() != []
    assert maintain(vac.engine).set_aside
    assert vac.samples() == []


def test_statistics_and_trends_are_computed_from_the_samples(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    # a minute of samples each second of one, and three of the other
    vac.batch([one] * 60, [NS0 + each * 10**9 for each in range(60)], [float(each) for each in range(60)])
    vac.batch([two] * 3, [NS0 + each * 10**9 for each in (1, 2, 50)], [1.0, None, 5.0])
    begin, end = T0, T0 + timedelta(minutes=1)
    figures = "select n, min, max, mean, nulls from ringlog.get_statistics(%s, %s, %s)"
    assert vac.rows(figures, "gauge:1", begin, end) == [(60, 0.0, 59.0, 29.5, 0)]
    assert vac.rows(figures, "gauge:2", begin, end) == [(2, 1.0, 5.0, 3.0, 1)]
    trend = 'select "time", n, mean from ringlog.get_trend(%s, %s, %s, 2)'
    assert vac.rows(trend, "gauge:1", begin, end) == [(T0, 30, 14.5), (T0 + timedelta(seconds=30), 30, 44.5)]
    every = "select value from ringlog.get_signal(%s, %s, %s, null, 20)"
    assert vac.rows(every, "gauge:1", begin, end) == [(0.0,), (20.0,), (40.0,)]


# --- tables of samples whose values are waveforms ---


def test_waveforms_are_samples(traces: Traces) -> None:
    one, two = traces.number("gauge:1"), traces.number("gauge:2")
    call: list[Any] = [[one, two, one, one], [NS0 + 7, NS0 + 1, NS0 + 2, NS0 + 3_000_000_000]]
    call += [[[1.0, 2.0], [3.0], [], None], [2, 0, 0, 0]]
    for _ in range(2):
        traces.waves(*call)
    assert traces.put("gauge:2", at("2026-03-02 12:00:02"), [4.0, 5.0, 6.0, 7.0], 1, 4) == 0
    assert traces.samples() == [(2, []), (7, [1.0, 2.0]), (3_000_000_000, None)]
    assert traces.samples("gauge:2") == [(1, [3.0]), (2_000_000_000, [4.0, 5.0, 6.0, 7.0])]
    # the ring has two of each signal
    assert traces.rows("select signal, value, severity from online.vac order by signal, time") == [
        ("gauge:1", [1.0, 2.0], 2),
        ("gauge:1", None, 0),
        ("gauge:2", [3.0], 0),
        ("gauge:2", [4.0, 5.0, 6.0, 7.0], 1),
    ]
    assert traces.rows("select value, severity from ringlog.get_vac_at(%s)", at("2026-03-02 12:00:01")) == [
        ([1.0, 2.0], 2),
        ([3.0], 0),
    ]
    assert [row[4] for row in traces.rows("select * from ringlog.signal_states()")] == [None, "4 points"]
    # each is a block, and housekeeping leaves it so
    assert set(traces.merge()) == {0}
    assert traces.samples() == [(2, []), (7, [1.0, 2.0]), (3_000_000_000, None)]


def test_waveforms_of_samples_are_read_as_those_of_rows(traces: Traces) -> None:
    one = traces.number("gauge:1")
    times = [NS0 + second * 10**9 for second in range(5)]
    traces.waves([one] * 5, times, [[1.0, 3.0], [2.0], [5.0], None, None])
    assert traces.rows("select * from ringlog.get_waveform('gauge:1')") == [
        (at("2026-03-02 12:00:02"), [5.0])
    ]
    assert traces.rows("select value from ringlog.get_waveform('gauge:1', %s)", T0) == [([1.0, 3.0],)]
    assert traces.rows("select * from ringlog.get_waveform('gauge:1', %s)", at("2026-03-01 12:00:00")) == []
    assert traces.rows("select value from ringlog.get_waveforms('gauge:1', every_nth => 2)") == [
        ([1.0, 3.0],),
        ([5.0],),
    ]
    assert traces.rows("select * from ringlog.get_waveform_points('gauge:1', %s)", T0) == [(0, 1.0), (1, 3.0)]
    trend = "select n, min, max, mean from ringlog.get_trend('gauge:1.max', %s, %s, 1)"
    assert traces.rows(trend, T0, at("2026-03-02 12:00:05")) == [(3, 2.0, 5.0, pytest.approx(10 / 3))]
    trend = "select n, shortest, longest, nulls from ringlog.get_waveform_trend('gauge:1', %s, %s, 1)"
    assert traces.rows(trend, T0, at("2026-03-02 12:00:05")) == [(3, 1, 2, 2)]
    with pytest.raises(errors.DatatypeMismatch, match="is a waveform"):
        traces.rows("select * from ringlog.get_signal('gauge:1')")
    with pytest.raises(errors.DatatypeMismatch, match="is a waveform"):
        traces.rows("select * from ringlog.get_latest('gauge:1')")


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ("array[1.0, 2.0], lengths => array[3]", errors.ArraySubscriptError, "not those of all points"),
        ("array[1.0, 2.0], lengths => array[2, 0]", errors.ArraySubscriptError, "an element for each sample"),
        ("array[1.0, 2.0]", errors.ArraySubscriptError, "not those of all points"),
        ("array[1.0, null], lengths => array[2]", errors.ArraySubscriptError, "without a NULL among"),
        ("array[[1.0], [2.0]], lengths => array[2]", errors.ArraySubscriptError, "of one dimension"),
        (
            "array[1.0, 2.0, 3.0, 4.0, 5.0], lengths => array[5]",
            errors.StringDataRightTruncation,
            "has 5 points, and the facility file allows at most 4",
        ),
    ],
)
def test_wrong_waveforms_are_errors(
    traces: Traces, arguments: str, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        traces.rows(f"select ringlog.put_vac_batch(array[1], array[{NS0}], {arguments})")
    assert traces.value("select count(*) from log.vac") == 0


def test_another_waveform_of_the_same_time_is_refused(traces: Traces) -> None:
    one, two = traces.number("gauge:1"), traces.number("gauge:2")
    traces.waves([one], [NS0], [[1.0, 2.0]])
    for waves in ([[3.0], [1.0]], [[3.0], None]):
        with pytest.raises(errors.UniqueViolation, match="another sample of signal 'gauge:1'"):
            traces.waves([two, one], [NS0, NS0], waves)
    assert traces.samples("gauge:2") == []
    # one that is stored, and another twice in a call
    traces.waves([two, one, two], [NS0 + 9, NS0, NS0 + 9], [[8.0, 9.0], [1.0, 2.0], [8.0, 9.0]])
    assert traces.samples("gauge:2") == [(9, [8.0, 9.0])]
    # of a paused signal they are dropped, and the others are stored
    traces.rows("select ringlog.pause_signal('gauge:1')")
    traces.waves([one, two, one, two], [NS0 + 1, NS0 + 1, NS0 + 2, NS0 + 2], [[9.0], [3.0], None, [4.0, 5.0]])
    assert traces.samples("gauge:2") == [(1, [3.0]), (2, [4.0, 5.0]), (9, [8.0, 9.0])]
    assert traces.samples() == [(0, [1.0, 2.0])]
