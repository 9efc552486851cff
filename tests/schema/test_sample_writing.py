"""Tables of samples: put_<table> and put_<table>_batch store each sample once."""

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
from ringlog.schema.installing.install import install
from waiting import PATIENCE

from .conftest import NS0, T0, Connect, Vacuum, rows, vacuum


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
    vac.connection.add_notice_handler(lambda said: notices.append(said.message_primary or ""))
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
