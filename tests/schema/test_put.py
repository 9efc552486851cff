"""put_<table>: the ring never goes back in time, the log stores every row exactly once."""

import re
import threading
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import ANY

import psycopg
import pytest
from case_tables import cases, plain
from psycopg import errors

from ringlog.schema.facility import LogPolicy
from waiting import PATIENCE

from .conftest import Magnets, MagnetsWith, at

T0 = at("2026-03-02 12:00:00")


def second(number: float) -> datetime:
    return T0 + timedelta(seconds=number)


def test_a_row_is_in_ring_and_log(magnets: Magnets) -> None:
    assert magnets.put(3, T0, 42.5) == 0
    assert magnets.ring() == [(3, T0, 42.5)]
    assert magnets.log() == [(3, T0, 42.5)]
    assert magnets.rows('select * from online.magnets where "time" is not null') == [
        (3, T0, 42.5, True, "ready")
    ]
    assert magnets.value("select count(*) from online.magnets") == 5


@pytest.mark.parametrize("waveform", [False, True], ids=["numbers", "waveforms"])
@pytest.mark.parametrize("case", cases(__file__, "case"), ids=lambda case: case["name"])
def test_rows_in_ring_and_log(magnets_with: MagnetsWith, case: dict[str, Any], waveform: bool) -> None:
    log = LogPolicy(case.get("nth", 1), case.get("period"))
    magnets = magnets_with(rows=case.get("rows", 5), log=log, waveform=waveform)
    for seq_no, seconds, current in plain(case["put"]):
        for _ in range(case.get("times", 1)):
            assert magnets.put(seq_no or None, second(seconds), current) == 0
    for name, found in (("ring", magnets.ring()), ("log", magnets.log())):
        if name in case:
            assert found == [(number, second(seconds), *rest) for number, seconds, *rest in plain(case[name])]
    assert magnets.value("select seq_no from ringlog.last_magnets()") == case.get("last", ANY)


@pytest.mark.parametrize("current", [1.5, float("nan"), float("inf"), -0.0, None])
def test_a_repeat_is_absorbed(magnets: Magnets, current: float | None) -> None:
    for _ in range(3):
        assert magnets.put(1, T0, current) == 0
    assert magnets.value("select count(*) from log.magnets") == 1
    assert magnets.value('select count(*) from online.magnets where "time" is not null') == 1


def test_another_row_of_the_same_number_and_time_is_refused(magnets: Magnets) -> None:
    """The message names the difference, and the action to take."""
    magnets.put(1, T0, 1)
    for current in (2, None, float("nan")):
        with pytest.raises(errors.UniqueViolation) as error:
            magnets.put(1, T0, current)
        message = error.value.diag.message_primary or ""
        assert re.fullmatch(
            r"put_magnets: the log has another row of seq_no 1 at 2026\S+ \S+: "
            r"its values of current differ\. Give each reading a time or a seq_no of its own "
            r"\(datetime has steps of 1/300 s, a time as text keeps its microseconds\)",
            message,
        ), message
    assert magnets.ring() == magnets.log() == [(1, T0, 1)]


def test_a_row_that_an_index_of_the_site_refuses(magnets: Magnets) -> None:
    magnets.connection.execute('create unique index own on weeks.magnets ("time", current)')
    try:
        magnets.put(1, T0, 1)
        with pytest.raises(errors.UniqueViolation, match="another unique index treats it as the same row"):
            magnets.put(2, T0, 1)
        assert magnets.log() == magnets.ring() == [(1, T0, 1)]
    finally:
        magnets.connection.execute("drop index weeks.own")


@pytest.mark.parametrize(
    ("here", "words"),
    [
        ('{"a": 1, "b": 2, "c": 3, "d": 4, "e": null}', None),
        ('{"a": 1, "b": 0, "c": 3, "d": 4, "e": 5}', "its values of b, e differ"),
        ('{"a": 0, "b": 0, "c": 0, "d": 0, "e": null}', "its values of a, b, c and of 1 columns more differ"),
    ],
)
def test_differences_in_messages(magnets: Magnets, here: str, words: str | None) -> None:
    there = '{"a": 1, "b": 2, "c": 3, "d": 4, "e": null}'
    assert magnets.value("select ringlog.differences(%s, %s)", there, here) == words


@pytest.mark.parametrize("seq_no", [0, 6, -1, 2147483647, -2147483648])
def test_a_number_outside_the_ring_is_refused(magnets: Magnets, seq_no: int) -> None:
    with pytest.raises(errors.CheckViolation) as error:
        magnets.put(seq_no, T0)
    assert error.value.diag.message_primary == f"put_magnets: seq_no {seq_no} is outside 1 to 5"
    assert magnets.ring() == magnets.log() == []


def test_no_time_is_refused(magnets: Magnets) -> None:
    with pytest.raises(errors.NotNullViolation, match="put_magnets: time must not be null"):
        magnets.put(1, None)
    with pytest.raises(errors.NotNullViolation, match="put_magnets: time must not be null"):
        magnets.rows("select ringlog.put_magnets(null)")
    assert magnets.ring() == magnets.log() == []


@pytest.mark.parametrize("time", ["infinity", "-infinity"])
def test_an_endless_time_is_refused(magnets: Magnets, time: str) -> None:
    with pytest.raises(errors.DatetimeFieldOverflow, match=f"put_magnets: time must not be {time}"):
        magnets.put(1, time)
    assert magnets.ring() == magnets.log() == []


@pytest.mark.parametrize("log", [LogPolicy(), LogPolicy(nth=5), LogPolicy(period=60)])
@pytest.mark.parametrize(
    "time", ["4713-01-01 00:00:00 BC", "1900-01-01", "1970-01-01", "9999-12-31 23:59:59", "294276-12-31"]
)
def test_no_wrong_time_loses_a_row(magnets_with: MagnetsWith, time: str, log: LogPolicy) -> None:
    magnets = magnets_with(log=log)
    for _ in range(2):
        magnets.put(1, time)
    assert magnets.value('select count(*) from log.magnets_default where "time" = %s', time) == 1
    assert magnets.value('select count(*) from online.magnets where "time" = %s', time) == 1


# --- seq_no left out ---


def test_without_a_number_a_full_ring_of_one_time_takes_no_more(magnets: Magnets) -> None:
    for number in range(5):
        magnets.put(None, T0, number)
    with pytest.raises(errors.UniqueViolation, match="the log has another row of seq_no 1"):
        magnets.put(None, T0, 5)
    assert [row[2] for row in magnets.log()] == [row[2] for row in magnets.ring()] == [0, 1, 2, 3, 4]


def test_two_callers_without_a_number_get_two_rows(magnets: Magnets) -> None:
    """The second waits until the first has committed."""
    first, other = magnets.connect(), Magnets(magnets.connect)
    first.autocommit = False
    first.execute("select ringlog.put_magnets(row (null, %s, 1, true, '')::online.magnets)", [second(1)])
    waiting = threading.Thread(target=other.put, args=(None, second(2)))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    first.commit()
    waiting.join(PATIENCE)
    assert [row[:2] for row in magnets.ring()] == [(1, second(1)), (2, second(2))]


@pytest.mark.parametrize("policy", [LogPolicy(), LogPolicy(nth=10), LogPolicy(period=10)])
def test_without_a_number_writers_with_interleaved_times(
    magnets_with: MagnetsWith, policy: LogPolicy
) -> None:
    """Eight, with rows a fraction of a second apart, a fifth of them sent twice: each row has a place."""
    magnets = magnets_with(rows=1000, log=policy)

    def write(caller: int) -> None:
        own = Magnets(magnets.connect)
        for number in range(100):
            row = (None, second(number + caller / 1000 - (number % 3) / 10), caller * 1000.0 + number)
            own.put(*row)
            if number % 5 == 0:
                own.put(*row)

    callers = [threading.Thread(target=write, args=(caller,)) for caller in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    ring = magnets.ring()
    assert [row[0] for row in ring] == list(range(1, 801))
    assert len({row[2] for row in ring}) == 800
    logged = magnets.log()
    assert len({row[2] for row in logged}) == len(logged)
    if policy.every:
        assert len(logged) == 800
    elif policy.period is None:
        assert [row[0] % 10 for row in logged] == [1] * 80
    else:
        assert len(logged) == 10


# --- clocks ---


def test_a_time_far_ahead_is_logged_reported_and_not_in_the_ring(magnets_with: MagnetsWith) -> None:
    magnets = magnets_with(clock_tolerance=timedelta(days=1), log=LogPolicy(nth=5))
    now = magnets.value("select date_trunc('second', now())")
    notices: list[str] = []
    magnets.connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    magnets.put(None, now - timedelta(minutes=1), 1)
    for current in (2, 2, 3):
        magnets.put(None, "9999-06-01 00:00:00+00", current)
    magnets.put(3, now + timedelta(days=2), 4)
    magnets.put(None, now + timedelta(hours=23), 5)
    assert [row[0::2] for row in magnets.ring()] == [(1, 1), (2, 5)]
    assert magnets.rows('select current from log.magnets where "time" > now() order by "time"') == [
        (4,),
        (2,),
        (3,),
    ]
    assert magnets.value('select count(*) from log.magnets_default where "time" > now()') == 2
    assert len(notices) == 5
    assert re.fullmatch(
        r"put_magnets: the time \S+ \S+ is 2[23]:\d\d:\d\d ahead of the server.s clock: is it of .*",
        notices[4],
    )
    assert notices[0] == (
        "put_magnets: the time 9999-06-01 09:00:00+09 is more than 1 day ahead of the server's clock:"
        " the row is in the log, not in the ring"
    )
    assert magnets.value("select current from ringlog.get_magnets()") == 5
    assert magnets.rows("select table_name, kind, sum(rows)::integer from ringlog.event group by 1, 2") == [
        ("magnets", "clock", 3)
    ]


def test_a_time_more_than_a_minute_ahead_is_stored_with_a_message(magnets_with: MagnetsWith) -> None:
    magnets = magnets_with()
    now = magnets.value("select now()")
    notices: list[str] = []
    magnets.connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    magnets.put(1, now + timedelta(seconds=50), 1)
    assert notices == []
    magnets.put(2, now + timedelta(hours=9, seconds=30), 2)
    ((message),) = notices
    assert re.fullmatch(r"put_magnets: .* is 0?9:00:\d\d ahead of the server's clock: is it .*", message)
    assert [row[0::2] for row in magnets.ring()] == [(1, 1), (2, 2)]


def test_a_ring_goes_on_after_a_time_far_ahead(magnets_with: MagnetsWith) -> None:
    """Clients that omit seq_no get one place after another, whatever their clocks."""
    magnets = magnets_with(clock_tolerance=timedelta(hours=1))
    for number in range(4):
        magnets.put(None, second(number), number)
        magnets.put(None, "2999-01-01", number)
    assert [row[2] for row in magnets.ring()] == [0, 1, 2, 3]
    assert magnets.value("select count(*) from log.magnets_default where \"time\" > '2900-01-01'") == 4


# --- NaN and infinities ---


@pytest.mark.parametrize("current", [float("nan"), float("inf"), float("-inf")])
def test_nan_is_no_reading_if_the_table_says_so(magnets_with: MagnetsWith, current: float) -> None:
    magnets = magnets_with(nan="null")
    for _ in range(2):
        magnets.put(1, T0, current)
    magnets.put(2, second(1), 3.4028235e38)
    assert magnets.ring() == magnets.log() == [(1, T0, None), (2, second(1), 3.4028235e38)]


def test_nan_and_infinities_are_kept_bit_for_bit(magnets: Magnets) -> None:
    magnets.put(1, T0, float("nan"))
    magnets.put(2, T0, float("-inf"))
    assert magnets.rows("select float4send(current) from log.magnets order by seq_no") == [
        (b"\x7f\xc0\0\0",),
        (b"\xff\x80\0\0",),
    ]


# --- log policies ---


def test_two_callers_in_one_period(magnets_with: MagnetsWith) -> None:
    magnets = magnets_with(log=LogPolicy(period=10))
    first, other = magnets.connect(), Magnets(magnets.connect)
    first.autocommit = False
    first.execute("select ringlog.put_magnets(row (1, %s, 1, true, '')::online.magnets)", [second(1)])
    waiting = threading.Thread(target=other.put, args=(2, second(2)))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    first.commit()
    waiting.join(PATIENCE)
    assert [row[0] for row in magnets.log()] == [1]
    assert [row[0] for row in magnets.ring()] == [1, 2]


# --- requirements of the gateway ---


def test_put_may_be_grouped(magnets: Magnets) -> None:
    """It runs as a role without login, with a fixed search path, and returns one integer."""
    assert magnets.rows(
        "select prosecdef, provolatile, proretset, proconfig, rolname, rolcanlogin, prorettype::regtype::text"
        " from pg_proc join pg_roles on pg_roles.oid = proowner where proname = 'put_magnets'"
    ) == [(True, "v", False, ["search_path=pg_catalog, pg_temp"], "ringlog_owner", False, "integer")]


def test_a_failed_call_leaves_its_transaction_clean(magnets: Magnets) -> None:
    connection = magnets.connect()
    connection.autocommit = False
    call = "select ringlog.put_magnets(row (%s, %s, 1, true, '')::online.magnets)"
    connection.execute(call, [1, T0])
    with pytest.raises(psycopg.Error):
        connection.execute(call, [9, T0])
    connection.rollback()
    assert magnets.ring() == magnets.log() == []
