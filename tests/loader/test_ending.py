"""The end of a site's own writer: waiting rows are sent, and the table is released, also over a cut
connection."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from proxy import Proxy
from ringlog.clients import Address
from ringlog.clients.figures import State
from ringlog.clients.writer import Writer
from ringlog.schema.facility import Facility
from servers import RunningServer
from waiting import PATIENCE, wait_until


class Site:
    def __init__(self, facility: Facility, address: Address, server: RunningServer, folder: Path) -> None:
        (self._table,) = (table for table in facility.tables if table.name == "magnet")
        self._zone, self._server, self._folder = ZoneInfo(facility.timezone), server, folder
        self.proxy = Proxy(address.port)
        self._address = replace(address, host="127.0.0.1", port=self.proxy.port)

    def writer(self, spool: str = "spool") -> Writer:
        """A writer that has begun, through the proxy."""
        password = self._server.writer.password
        writer = Writer(self._table, self._zone, self._address, password, self._folder / spool)
        wait_until(lambda: writer.began, lambda: (writer.error, writer.figures))
        return writer


@pytest.fixture
def site(facility: Facility, address: Address, quick_server: RunningServer, tmp_path: Path) -> Iterator[Site]:
    site = Site(facility, address, quick_server, tmp_path)
    yield site
    site.proxy.cut()


def test_a_cut_connection_is_restored_before_the_end(site: Site) -> None:
    writer = site.writer()
    sleep, goes_on = writer._connection._sleep, threading.Event()
    # the pause before the next attempt lasts until the test has checked
    writer._connection._sleep = lambda seconds: (goes_on.wait(PATIENCE), sleep(seconds))
    site.proxy.cut()
    writer.put(datetime.now(UTC), current_1=1.0)
    wait_until(lambda: writer.figures.state == State.RECONNECTING)
    threading.Timer(0.2, goes_on.set).start()
    assert writer.drain(PATIENCE), writer.figures
    writer.close()


def test_a_writer_with_a_cut_idle_connection_releases_its_table(site: Site) -> None:
    writer = site.writer()
    site.proxy.cut()
    writer.close()
    # one of another spool would be refused
    with site.writer("other") as other:
        other.put(datetime.now(UTC), current_1=2.0)
        assert other.drain(PATIENCE), other.error


def test_rows_that_are_not_sent_are_reported(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    writer = site.writer()
    site.proxy.closed = True
    site.proxy.cut()
    writer.put(datetime.now(UTC), current_1=3.0)
    writer.put(datetime.now(UTC), current_1=4.0)
    with caplog.at_level(logging.WARNING, "ringlog.clients.writer"):
        # a server that cannot be reached is not waited for
        writer.close(PATIENCE)
    assert caplog.messages == [f"magnet: 2 rows wait in {writer._spool.file} for the next writer"]
    site.proxy.closed = False
    with site.writer() as writer:
        assert writer.drain(PATIENCE), writer.error
