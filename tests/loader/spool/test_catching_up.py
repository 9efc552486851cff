"""After an outage: rows of the spool are sent in order and in batches, live rows first, each stored once."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from psycopg import sql

from proxy import Proxy
from ringlog.clients import Address
from ringlog.clients.figures import Counts, State
from ringlog.clients.spool.spool import Spool
from ringlog.clients.writer import Writer, spool_file
from ringlog.schema.facility import Facility, Table
from ringlog.schema.moments import microseconds
from servers import RunningServer
from spools import put
from waiting import PATIENCE, wait_until

BEGIN = datetime(2024, 2, 5, 12, tzinfo=UTC)


@pytest.fixture
def table(facility: Facility) -> Table:
    (found,) = (table for table in facility.tables if table.name == "every_type")
    return found


class Site:
    """A site's own writer, and its rows in the log."""

    def __init__(self, server: RunningServer, address: Address, table: Table, folder: Path) -> None:
        self.server, self.address, self.table, self.folder = server, address, table, folder
        self.zone = ZoneInfo("Asia/Tokyo")

    def fill(self, rows: list[tuple[datetime, list[Any]]]) -> None:
        """Rows of an outage, which exist only in the spool."""
        file = spool_file(self.folder, self.address, self.table.name)
        columns = [column.name for column in self.table.columns]
        spool = Spool(file, self.table.name, columns, self.table.rows)
        for moment, readings in rows:
            put(spool, microseconds(moment), readings)
        spool.close()

    def writer(self, figures: Counts, stored: list[datetime] | None = None) -> Writer:
        """`stored` gets the times of rows at the server."""
        return Writer(
            self.table,
            self.zone,
            self.address,
            self.server.writer.password,
            self.folder,
            figures=figures,
            acknowledged=None if stored is None else lambda _, moment: stored.append(moment),
        )

    def log(self, since: datetime, until: datetime) -> list[tuple[Any, ...]]:
        query = sql.SQL("select * from {} where time >= %s and time < %s order by time").format(
            sql.Identifier("log", self.table.name)
        )
        with psycopg.connect(self.server.dsn, options="-c timezone=UTC") as connection:
            return connection.execute(query, [since, until], binary=True).fetchall()


@pytest.fixture
def site(quick_server: RunningServer, address: Address, table: Table, tmp_path: Path) -> Site:
    return Site(quick_server, address, table, tmp_path)


@pytest.mark.long
def test_the_backlog_is_sent_in_batches_with_every_value(site: Site) -> None:
    rows: list[tuple[datetime, list[Any]]] = [
        (
            BEGIN + timedelta(seconds=number),
            [number / 7, number / 7, number, -1, 2**62 + number, True, "磁石\"'"],
        )
        for number in range(700)
    ]
    rows[10][1][0] = float("inf")
    rows[11][1][1] = float("-inf")
    rows[12][1][:] = [None] * 7
    # as a double it lies halfway between two reals, as its shortest digits it does not
    rows[13][1][0] = 0.1 + 2.0**-28
    site.fill(rows)
    figures = Counts()
    with site.writer(figures) as writer:
        assert writer.drain(PATIENCE), (writer.error, figures)
        # the rows after the outage are live again
        writer.put(BEGIN + timedelta(seconds=700), a_real=1.0)
        assert writer.drain(PATIENCE), (writer.error, figures)
    assert figures.acknowledged == 701
    assert figures.late == 699, "the newest row goes first, for the ring"
    assert 1 <= figures.batches < 100
    assert (figures.refused, figures.repeated, figures.spooled, figures.oldest) == (0, 0, 0, 0)
    stored = site.log(BEGIN, BEGIN + timedelta(hours=1))
    assert len(stored) == 701
    assert [row[0] for row in stored] == [(stored[0][0] - 1 + number) % 1000 + 1 for number in range(701)]
    assert stored[10][2] == float("inf")
    assert stored[11][3] == float("-inf")
    assert stored[12][2:] == (None,) * 7
    assert stored[500][3:] == (500 / 7, 500, -1, 2**62 + 500, True, "磁石\"'")
    # equal to single calls: sent again one by one, all of them are known already
    site.fill(rows[:40])
    before = site.server.sql("select count(*) from log.every_type")[0]
    again = Counts()
    file = spool_file(site.folder, site.address, "every_type")
    spool = Spool(file, "every_type", [column.name for column in site.table.columns], 1000)
    numbers = {row[1]: row[0] for row in stored}
    row = spool.after(0)
    while row is not None:
        spool.renumber(row._replace(seq_no=numbers[rows[row.id - 702][0]] - 1))
        row = spool.after(row.id)
    spool.close()
    with site.writer(again) as writer:
        writer._sender._alone = {True: 10**9, False: 10**9}
        assert writer.drain(PATIENCE), (writer.error, again)
    assert (again.acknowledged, again.refused, again.batches) == (40, 0, 0)
    assert site.server.sql("select count(*) from log.every_type")[0] == before


def test_a_refused_row_does_not_affect_its_batch(site: Site) -> None:
    begin = BEGIN + timedelta(days=10)
    rows: list[tuple[datetime, list[Any]]] = [
        (begin + timedelta(seconds=number), [1.0, None, number, None, None, None, None])
        for number in range(100)
    ]
    rows[30][1][6] = "longer than twelve"
    rows[60][1][3] = 40000
    site.fill(rows)
    figures = Counts()
    with site.writer(figures) as writer:
        assert writer.drain(PATIENCE), (writer.error, figures)
    assert (figures.acknowledged, figures.refused) == (98, 2)
    assert figures.batches > 0
    stored = [row[4] for row in site.log(begin, begin + timedelta(hours=1))]
    assert stored == [number for number in range(100) if number not in (30, 60)]


def test_waiting_live_rows_are_sent_together(site: Site) -> None:
    site.table = replace(site.table, collect=3600.0)
    begin, figures = BEGIN + timedelta(days=5), Counts()
    with site.writer(figures) as writer:
        wait_until(lambda: writer.began, "the writer has begun")
        for number in range(20):
            # one that its column cannot hold
            whole = 2**31 if number == 7 else number
            writer.put(begin + timedelta(seconds=number), a_real=number / 7, an_int=whole)
        assert figures.acknowledged == 0, "they wait for others"
    # the first call of 16 is refused, and its rows go one by one
    assert (figures.acknowledged, figures.refused, figures.batches) == (19, 1, 1)
    assert (figures.late, figures.spooled) == (0, 0)
    stored = site.log(begin, begin + timedelta(hours=1))
    assert [row[4] for row in stored] == [number for number in range(20) if number != 7]
    assert figures.seq_no == stored[-1][0]


def test_live_rows_overtake_the_backlog(site: Site) -> None:
    begin = BEGIN + timedelta(days=20)
    site.fill([(begin + timedelta(seconds=number), [0.5, *[None] * 6]) for number in range(1500)])
    figures = Counts()
    stored: list[datetime] = []
    with psycopg.connect(site.server.dsn) as holder:
        # nothing of the backlog is stored before there is a live row
        holder.execute("lock table weeks.every_type in share mode")
        with site.writer(figures, stored) as writer:
            for number in range(8):
                live = begin + timedelta(seconds=2000 + number)
                writer.put(live, a_real=1.5)
                holder.rollback()
                wait_until(lambda live=live: live in stored[-2000:], lambda: (writer.error, figures))
            assert writer.drain(PATIENCE), (writer.error, figures)
    # however late the others were put, the first was there when the backlog was sent
    assert stored.index(begin + timedelta(seconds=2000)) < 1400, "live rows come between those of the backlog"
    late = [moment for moment in stored if moment < begin + timedelta(seconds=1999)]
    assert late[1:] == sorted(late[1:]), "the backlog comes in order"
    assert figures.acknowledged == 1508
    assert len(site.log(begin, begin + timedelta(hours=3))) == 1508


def test_a_row_with_an_occupied_place_gets_the_next(
    quick_server: RunningServer, address: Address, facility: Facility, tmp_path: Path
) -> None:
    """A clock that was set back by the duration of one round of the ring."""
    (table,) = (table for table in facility.tables if table.name == "magnet")
    assert table.rows == 7
    site = Site(quick_server, address, table, tmp_path)
    begin = BEGIN + timedelta(days=30)
    figures = Counts()
    with site.writer(figures) as writer:
        for number in range(7):
            writer.put(begin + timedelta(seconds=number), current_1=1.0)
        # otherwise a row put after them may be sent before them, as a live row, and they go to the next place
        assert writer.drain(PATIENCE), (writer.error, figures)
        writer.put(begin, current_1=2.0)
        writer.put(begin + timedelta(seconds=1), current_1=2.0)
        assert writer.drain(PATIENCE), (writer.error, figures)
    assert (figures.acknowledged, figures.refused) == (9, 0)
    both = [(row[2], row[0]) for row in site.log(begin, begin + timedelta(microseconds=1))]
    (old, seq_no), (new, other) = sorted(both)
    assert (old, new) == (1.0, 2.0)
    assert other == seq_no % 7 + 1


def test_texts_that_the_driver_cannot_send(site: Site) -> None:
    begin = BEGIN + timedelta(days=70)
    figures = Counts()
    with site.writer(figures) as writer:
        for number, text in enumerate(["", "a\0b", " ", "on"]):
            writer.put(begin + timedelta(seconds=number), a_real=0.1, an_int=number, a_varchar=text)
        with pytest.raises(ValueError, match="surrogates not allowed"):
            writer.put(begin + timedelta(seconds=9), a_varchar="\ud800")
        assert writer.drain(PATIENCE), (writer.error, figures)
    assert (figures.acknowledged, figures.refused) == (4, 0)
    rows = site.log(begin, begin + timedelta(hours=1))
    assert [row[4] for row in rows] == [0, 1, 2, 3]
    assert [row[8] for row in rows] == ["", None, " ", "on"]
    # as a real, not as a double
    assert len({row[2] for row in rows}) == 1
    with psycopg.connect(site.server.dsn) as connection:
        query = "select message from ringlog.event where kind = 'unfit' and time = %s"
        (words,) = connection.execute(query, [begin + timedelta(seconds=1)]).fetchall()
    assert words == ("a_varchar: a text with a NUL cannot be stored",)


@pytest.mark.parametrize("driver", ["ctds", "psycopg"])
def test_other_drivers_send_batches_too(
    driver: str, quick_server: RunningServer, address: Address, table: Table, tmp_path: Path
) -> None:
    if driver == "psycopg":
        way = Address(address.user, "127.0.0.1", quick_server.postgres_port, "ringlog", driver=driver)
    else:
        way = replace(address, driver=driver)
    site = Site(quick_server, way, table, tmp_path)
    begin = BEGIN + timedelta(days=50 if driver == "ctds" else 60)
    site.fill(
        [
            (begin + timedelta(seconds=number), [0.1, 0.1, number, None, None, False, "磁石"])
            for number in range(200)
        ]
    )
    figures = Counts()
    with site.writer(figures) as writer:
        assert writer.drain(PATIENCE), (writer.error, figures)
        writer.put(begin + timedelta(seconds=200), an_int=200)
        assert writer.drain(PATIENCE), (writer.error, figures)
    assert figures.batches > 0
    stored = site.log(begin, begin + timedelta(hours=1))
    assert [row[4] for row in stored] == [*range(201)]
    assert stored[7][3:] == (0.1, 7, None, None, False, "磁石")


# --- the end of a site's own writer ---


class EndingSite:
    def __init__(self, facility: Facility, address: Address, server: RunningServer, folder: Path) -> None:
        (self._table,) = (table for table in facility.tables if table.name == "magnet")
        self._zone, self._server, self._folder = ZoneInfo(facility.timezone), server, folder
        self.proxy = Proxy(address.port)
        self._address = replace(address, host="127.0.0.1", port=self.proxy.port)

    def writer(self, spool: str = "spool") -> Writer:
        """A writer whose connection through the proxy is idle: its first report precedes its first row."""
        password = self._server.writer.password
        writer = Writer(self._table, self._zone, self._address, password, self._folder / spool)
        writer.put(datetime.now(UTC), current_1=0.0)
        assert writer.drain(PATIENCE), (writer.error, writer.figures)
        return writer


@pytest.fixture
def ending(
    facility: Facility, address: Address, quick_server: RunningServer, tmp_path: Path
) -> Iterator[EndingSite]:
    ending = EndingSite(facility, address, quick_server, tmp_path)
    yield ending
    ending.proxy.cut()


def test_a_cut_connection_is_restored_before_the_end(ending: EndingSite) -> None:
    writer = ending.writer()
    sleep, goes_on = writer._connection._sleep, threading.Event()
    # the pause before the next attempt lasts until the test has checked
    writer._connection._sleep = lambda seconds: (goes_on.wait(PATIENCE), sleep(seconds))
    ending.proxy.cut()
    writer.put(datetime.now(UTC), current_1=1.0)
    wait_until(lambda: writer.figures.state == State.RECONNECTING, lambda: (writer.error, writer.figures))
    threading.Timer(0.2, goes_on.set).start()
    assert writer.drain(PATIENCE), writer.figures
    writer.close()


def test_a_writer_with_a_cut_idle_connection_releases_its_table(ending: EndingSite) -> None:
    writer = ending.writer()
    ending.proxy.cut()
    writer.close()
    # one of another spool would be refused
    with ending.writer("other") as other:
        other.put(datetime.now(UTC), current_1=2.0)
        assert other.drain(PATIENCE), other.error


def test_rows_that_are_not_sent_are_reported(ending: EndingSite, caplog: pytest.LogCaptureFixture) -> None:
    writer = ending.writer()
    ending.proxy.closed = True
    ending.proxy.cut()
    writer.put(datetime.now(UTC), current_1=3.0)
    writer.put(datetime.now(UTC), current_1=4.0)
    with caplog.at_level(logging.WARNING, "ringlog.clients.writer"):
        # a server that cannot be reached is not waited for
        writer.close(PATIENCE)
    assert caplog.messages == [f"magnet: 2 rows wait in {writer._spool.file} for the next writer"]
    ending.proxy.closed = False
    with ending.writer() as writer:
        assert writer.drain(PATIENCE), writer.error
