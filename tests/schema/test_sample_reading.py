"""Tables of samples: reading in SQL, housekeeping."""

import json
import random
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from ringlog.schema.facility import (
    Retention,
)
from ringlog.schema.installing.install import InstallRefused, difference, install
from ringlog.schema.relations.partitions import maintain

from .conftest import NS0, T0, Connect, Vacuum, rows, vacuum


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
    assert vac.rows(trend, "gauge:1", begin, end) == [
        (T0, 30, 14.5),
        (T0 + timedelta(seconds=30), 30, 44.5),
    ]
    every = "select value from ringlog.get_signal(%s, %s, %s, null, 20)"
    assert vac.rows(every, "gauge:1", begin, end) == [(0.0,), (20.0,), (40.0,)]
