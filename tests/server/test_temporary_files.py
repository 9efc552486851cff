"""Temporary files of all statements together are limited."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pymssql
import pytest

from ringlog.server.guards.temporary import MOST_WRITING, Statement, excess
from servers import add_logins, serving

CANCELLED = 3617  # (ASE Troubleshooting and Error Messages Guide)
SORT = "select count(*) from (select distinct i from generate_series(1, 3000000) i) as d"
NOON = datetime(2034, 1, 1, 12, tzinfo=UTC)


def statement(pid: int, login: str) -> Statement:
    return Statement(pid, login, NOON + timedelta(seconds=pid))


def test_the_youngest_statements_of_the_greediest_login_end() -> None:
    running = [statement(1, "modest"), *(statement(pid, "greedy") for pid in range(2, 7))]
    sizes = dict.fromkeys(range(1, 7), 10)
    ended = excess(running, sizes, writing=set(sizes), most=3, limit=1000)
    assert [each.pid for each in ended] == [6, 5, 4]


def test_statements_that_no_longer_write_remain() -> None:
    running = [statement(pid, "one") for pid in range(1, 7)]
    sizes = dict.fromkeys(range(1, 7), 10)
    assert excess(running, sizes, writing={1, 2, 3}, most=3, limit=1000) == []


def test_the_largest_files_are_ended_first_if_all_are_too_large() -> None:
    running = [statement(1, "one"), statement(2, "two"), statement(3, "two")]
    ended = excess(running, {1: 50, 2: 70, 3: 20}, writing={1, 2, 3}, most=3, limit=100)
    assert [each.pid for each in ended] == [2]


@pytest.mark.long
def test_a_crowd_of_sorts_is_limited(data: Path) -> None:
    """The sessions continue; cancelled ones get the error of a cancelled statement."""
    crowd = MOST_WRITING + 8
    with serving(data, prepared=False) as server:
        add_logins(server.dsn)
        ends: Counter[int] = Counter()
        later: list[str] = []

        def sort() -> None:
            login = server.reader
            with server.connect(login.user, login.password, timeout=300) as connection:
                cursor = connection.cursor()
                try:
                    cursor.execute(SORT)
                    cursor.fetchall()
                    ends[0] += 1
                except pymssql.Error as error:
                    ends[error.args[0]] += 1
                try:
                    cursor.execute("select 1")
                    cursor.fetchall()
                except pymssql.Error as error:
                    later.append(str(error))

        threads = [threading.Thread(target=sort) for _ in range(crowd)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert later == [], "every session goes on"
        assert ends[CANCELLED] > 0
        assert ends[0] + ends[CANCELLED] == crowd
