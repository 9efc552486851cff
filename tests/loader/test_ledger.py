"""The ledger: every produced row is accounted for by table and hour, and missing rows are named."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from ringlog.clients import Address
from ringlog.clients.writer import Writer
from ringlog.loader.gaps import Gaps
from ringlog.schema.facility import Facility
from servers import RunningServer, ringlog
from waiting import wait_until

HOUR = timedelta(hours=1)


def losses(server: RunningServer, begin: datetime, end: datetime) -> list[tuple[Any, ...]]:
    query = (
        "select table_name, hour, produced, acknowledged, in_log, refused, waiting, missing"
        " from ringlog.losses(%s, %s, 'every_type')"
    )
    with psycopg.connect(server.dsn_of(server.reader), options="-c timezone=UTC") as connection:
        return connection.execute(query, [begin, end]).fetchall()


def test_rows_are_counted_by_the_hour(
    facility: Facility, address: Address, quick_server: RunningServer, tmp_path: Path
) -> None:
    (table,) = (table for table in facility.tables if table.name == "every_type")
    noon = datetime(2021, 5, 5, 12, tzinfo=UTC)
    password = quick_server.writer.password
    with Writer(table, ZoneInfo(facility.timezone), address, password, tmp_path) as writer:
        for minute in range(0, 150, 10):
            writer.put(noon + timedelta(minutes=minute), an_int=minute)
        writer.put(noon + 2 * HOUR + timedelta(minutes=31), a_varchar="longer than twelve")
        writer.note("gap", 0, "the source gave no rows", until=3_600_000_000, rows=7)
        assert writer.drain(100)
    assert losses(quick_server, noon, noon + 3 * HOUR) == [
        ("every_type", noon, 6, 6, 6, 0, 0, 0),
        ("every_type", noon + HOUR, 6, 6, 6, 0, 0, 0),
        ("every_type", noon + 2 * HOUR, 4, 3, 3, 1, 0, 0),
    ]
    with psycopg.connect(quick_server.dsn, options="-c timezone=UTC") as connection:
        events = connection.execute(
            "select kind, time, until, rows, message from ringlog.event where table_name = 'every_type'"
            " and (time < '2000-01-01' or kind = 'refused' and time between %s and %s) order by time",
            [noon, noon + 3 * HOUR],
        ).fetchall()
        gap, refused = events
        assert gap == (
            "gap",
            *(datetime(1970, 1, 1, hour, tzinfo=UTC) for hour in (0, 1)),
            7,
            "the source gave no rows",
        )
        assert refused[:4] == ("refused", noon + timedelta(minutes=151), None, 1)
        assert "error 8152: Parameter '@a_varchar' of put_every_type_claimed: value too long" in refused[4]
        # an acknowledged row that is missing from the log is reported
        connection.execute("delete from log.every_type where time = %s", [noon])
        connection.commit()
    assert losses(quick_server, noon, noon + HOUR) == [("every_type", noon, 6, 6, 5, 0, 0, 1)]


def test_no_fewer_rows_were_produced_than_are_accounted_for(quick_server: RunningServer) -> None:
    """A spool that was damaged counts otherwise than before."""
    noon = datetime(2021, 6, 5, 12, tzinfo=UTC)
    counts = ((100, 100, 0, 0), (100, 71, 29, 0), (0, 5, 0, 2))
    with psycopg.connect(quick_server.dsn_of(quick_server.writer), autocommit=True) as writer:
        for hour, spool, figures in (
            *((noon, "one", each) for each in counts[:2]),
            (noon + HOUR, "two", counts[2]),
        ):
            report = "select ringlog.report_ledger('every_type', %s, %s, %s, %s, %s, %s, 0, 0)"
            writer.execute(report, [spool, hour, *figures])
    found = losses(quick_server, noon, noon + 2 * HOUR)
    assert [(row[2], row[3], row[5], row[6]) for row in found] == [(129, 100, 0, 0), (7, 5, 2, 0)]


@pytest.mark.long
def test_the_report_names_lost_rows(
    load: Callable[..., Any], quick_server: RunningServer, stored: Callable[[str], list[Any]]
) -> None:
    before = len(stored("beam"))
    one = load("--tables", "beam")

    def come() -> bool:
        assert one.process.poll() is None
        return len(stored("beam")) >= before + 5

    wait_until(come)
    assert one.stop()[0] == 0
    shown = ringlog("report", "losses", "--since", "1h", "--table", "beam", "--data", quick_server.data)
    # others have stopped before, too
    taken = re.search(r"^[1-9]\d* rows produced, 0 lost, (\d+) not taken$", shown.stdout, re.MULTILINE)
    assert taken, shown.stdout
    assert shown.returncode == (1 if int(taken[1]) else 0), shown.stdout + shown.stderr
    assert re.search(r"^ *table name +produced +acknowledged +in log", shown.stdout, re.MULTILINE), (
        shown.stdout
    )
    # a row of the ledger that is missing in the log
    quick_server.sql(
        "insert into ringlog.ledger"
        " (table_name, hour, spool, produced, acknowledged, thinned, refused, late, repeated)"
        " values ('every_type', '2021-05-05 12:00+00', 'gone', 20, 20, 0, 0, 0, 0)"
    )
    shown = ringlog(
        "report",
        "losses",
        "--table",
        "every_type",
        "--hourly",
        "--since",
        "999w",
        "--data",
        quick_server.data,
    )
    assert shown.returncode == 1
    assert re.search(r"^ *every_type +2021-05-05 ", shown.stdout, re.MULTILINE), shown.stdout
    assert re.search(r"^[1-9]\d+ rows produced, [1-9]\d* lost, ", shown.stdout, re.MULTILINE), shown.stdout
    unknown = ringlog("report", "losses", "--table", "beem", "--data", quick_server.data)
    assert unknown.returncode == 2
    assert "there is no table 'beem'" in unknown.stderr
    wrong = ringlog("report", "losses", "--since", "yesterday", "--data", quick_server.data)
    assert wrong.returncode == 2
    assert "'yesterday' is not a duration: write 90m, 24h, 7d or 2w" in wrong.stderr


@pytest.mark.long
def test_events_that_follow_each_other_are_one(quick_server: RunningServer) -> None:
    begin = datetime.now(UTC) - timedelta(minutes=50)
    kinds = ["thinned"] * 1500 + ["gap"] + ["thinned"] * 3 + ["alarm"] * 2
    with psycopg.connect(quick_server.dsn, autocommit=True) as connection:
        connection.execute("delete from ringlog.event where table_name = 'magnet'")
        with connection.cursor() as cursor:
            cursor.executemany(
                "insert into ringlog.event (spool, number, table_name, time, until, kind, rows, message)"
                " values ('many', %s, 'magnet', %s, %s, %s, 2, %s)",
                [
                    (
                        number,
                        begin + timedelta(seconds=number),
                        begin + timedelta(seconds=number + 1) if kind != "alarm" else None,
                        kind,
                        f"{kind} {number}",
                    )
                    for number, kind in enumerate(kinds)
                ],
            )

        def shown() -> list[str]:
            done = ringlog(
                "report", "losses", "--since", "1h", "--table", "magnet", "--data", quick_server.data
            )
            lines = [line.split() for line in done.stdout.splitlines()]
            return [
                " ".join(line[3:]) for line in lines if line[:1] == ["magnet"] and line[1].startswith("20")
            ]

        def clock(number: int) -> str:
            return f"{(begin + timedelta(seconds=number)).astimezone():%Y-%m-%d %H:%M:%S}"

        assert shown() == [
            f"{clock(1500)} thinned 3000 thinned 1499 (1500 events)",
            f"{clock(1501)} gap 2 gap 1500",
            f"{clock(1504)} thinned 6 thinned 1503 (3 events)",
            "- alarm 2 alarm 1504",
            "- alarm 2 alarm 1505",
        ]
        connection.execute("update ringlog.event set kind = 'alarm' where spool = 'many'")
        done = ringlog("report", "losses", "--since", "1h", "--table", "magnet", "--data", quick_server.data)
        assert "only the first 1000 are shown: name a --table, or a later --since" in done.stdout
        connection.execute("delete from ringlog.event where spool = 'many'")


def test_a_table_without_its_writer_is_reported(
    facility: Facility, address: Address, quick_server: RunningServer, tmp_path: Path
) -> None:
    (table,) = (table for table in facility.tables if table.name == "magnet")
    password = quick_server.writer.password
    begin = datetime.now(UTC)
    with Writer(table, ZoneInfo(facility.timezone), address, password, tmp_path, take_over=True) as writer:
        writer.put(datetime.now(UTC), current_1=1.0)
        assert writer.drain(100)
    with psycopg.connect(quick_server.dsn, autocommit=True) as connection:
        # another test may have put a row before
        arrived = "select 1 from ringlog.arrivals() where table_name = 'magnet' and called > %s"
        wait_until(lambda: connection.execute(arrived, [begin]).fetchone())
        connection.execute(
            'update online.magnet set "time" = "time" - interval \'10 minutes\' where "time" is not null'
        )
        connection.execute(
            "update ringlog.last_call set called = called - interval '10 minutes'"
            " where procedure like 'put_magnet%'"
        )
    shown = ringlog("report", "losses", "--since", "2m", "--table", "magnet", "--data", quick_server.data)
    assert shown.returncode == 1
    # 120 s at 0.2 s a row
    taken = re.search(r"^magnet: no row, not since .*: about (\d+) cycles$", shown.stdout, re.MULTILINE)
    assert taken, shown.stdout
    assert 600 <= int(taken[1]) < 900


def test_gaps_and_clocks_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[tuple[Any, ...]] = []
    monotonic, wall = 100.0, 0

    def advanced(seconds: float, set_by: float = 0.0) -> int:
        """The wall clock's later time, if it is set meanwhile."""
        nonlocal monotonic, wall
        monotonic += seconds
        wall += round((seconds + set_by) * 1_000_000)
        return wall

    monkeypatch.setattr("time.monotonic", lambda: monotonic)
    monkeypatch.setattr("time.time_ns", lambda: wall * 1000)

    def note(*event: Any) -> None:
        reported.append(event)

    gaps = Gaps(1.0, True, 5_000_000, note)
    # another process has ended at 5 s
    gaps.see(advanced(10.0))
    assert reported.pop() == ("gap", 5_000_000, "no writer was running", 10_000_000, 4)
    gaps.see(advanced(1.0))
    assert not reported
    gaps.see(advanced(3.0))
    assert reported.pop() == ("gap", 11_000_000, "the source gave no rows", 14_000_000, 2)
    gaps.see(advanced(1.0, 3600.0))
    assert reported.pop() == ("clock", 15_000_000, "the clock was set ahead by 3600.0 s", 3615_000_000, None)
    gaps.see(advanced(3.0, -3600.0))
    gap, set_back = reported.pop(), reported.pop()
    assert set_back == ("clock", 18_000_000, "the clock was set back by 3600.0 s", 3618_000_000, None)
    assert gap == ("gap", 15_000_000, "the source gave no rows", 18_000_000, 2)
    # a row that received its time before the clock is set, and the next one
    row = advanced(1.0)
    advanced(0.0, 3600.0)
    gaps.see(row)
    assert reported.pop() == ("clock", 19_000_000, "the clock was set ahead by 3600.0 s", 3619_000_000, None)
    gaps.see(advanced(1.0))
    gaps.see(advanced(1.0))
    assert not reported
    gaps.see(advanced(2.0))
    assert reported.pop() == ("gap", 3621_000_000, "the source gave no rows", 3623_000_000, 1)
    # a slow row is not a changed clock
    row = advanced(1.0)
    advanced(4.0)
    gaps.see(row)
    gaps.see(advanced(0.1) - 3_500_000)
    assert not reported
    # a recording has its own times
    recorded = Gaps(1.0, False, None, note)
    recorded.see(1_000_000)
    recorded.see(2_000_000)
    recorded.see(6_000_000)
    assert reported == [("gap", 2_000_000, "the source gave no rows", 6_000_000, 3)]
