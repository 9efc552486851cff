"""Writers of an older ringlog, and an older server: the former names of the procedures of reports."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest
import sqlalchemy as sa

from ringlog.clients import Address, Refused, call, connect, output
from ringlog.clients.writer import Writer
from ringlog.schema.facility import Facility
from ringlog.schema.install import bring_up_to_date
from servers import RunningServer
from waiting import PATIENCE, wait_until

HOUR = datetime(2026, 11, 20, 12, tzinfo=UTC)
FORMER_NAMES = {
    "report_writer": "tell_writer",
    "report_ledger": "tell_ledger",
    "report_events": "stored_events",
}


def test_a_writer_of_an_older_ringlog(address: Address, quick_server: RunningServer) -> None:
    connection = connect(address, quick_server.writer.password)
    call(connection, "claim_writer", "beam", "older", "test", True, output(int))
    call(
        connection, "tell_writer", table_name="beam", spool="older", state="running", produced=3, latency=0.5
    )
    for late in (2, 1):
        call(connection, "tell_ledger", "beam", "older", HOUR, 9, 8, 1, 0, late, 0)
        event = {"number": 7, "time": HOUR, "kind": "gap", "words": "-", "until": HOUR, "rows": 4}
        call(connection, "tell_event", table_name="beam", spool="older", **event)
    with psycopg.connect(quick_server.dsn) as administrator:
        assert administrator.execute(
            "select state, produced, acknowledged, latency from ringlog.writer where spool = 'older'"
        ).fetchall() == [("running", 3, None, 0.5)]
        assert administrator.execute(
            "select hour, produced, acknowledged, thinned, refused, late, repeated from ringlog.ledger"
            " where spool = 'older'"
        ).fetchall() == [(HOUR, 9, 8, 1, 0, 2, 0)]
        assert administrator.execute(
            "select number, time, kind, words, until, rows from ringlog.event where spool = 'older'"
        ).fetchall() == [(7, HOUR, "gap", "-", HOUR, 4)]
    call(connection, "release_writer", "beam", "older")


@pytest.fixture
def older_server(address: Address, quick_server: RunningServer) -> Iterator[psycopg.Connection]:
    """The server has the procedures of reports under their former names only, and releases without epochs."""
    writer = connect(address, quick_server.writer.password)

    def is_missing() -> bool:
        try:
            call(writer, "report_ledger")
        except Refused as error:
            return error.number == 2812
        return False

    with psycopg.connect(quick_server.dsn, autocommit=True) as administrator:
        for name, former in FORMER_NAMES.items():
            administrator.execute(
                f"do $do$ begin execute replace(pg_get_functiondef('ringlog.{name}'::regproc), '{name}',"
                f" '{former}'); execute replace(pg_get_functiondef('ringlog.tell_event'::regproc), '{name}',"
                f" '{former}'); end $do$; drop function ringlog.{name}".encode()
            )
        administrator.execute("drop function ringlog.release_claim")
        administrator.execute("notify ringlog_catalogue")
        wait_until(is_missing)
        yield administrator
        administrator.execute("drop function ringlog.stored_events")
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(quick_server.dsn))
    bring_up_to_date(engine)
    engine.dispose()
    wait_until(lambda: not is_missing())


def test_a_writer_at_an_older_server(
    facility: Facility,
    address: Address,
    quick_server: RunningServer,
    older_server: psycopg.Connection,
    tmp_path: Path,
) -> None:
    (table,) = (table for table in facility.tables if table.name == "magnet")
    zone = ZoneInfo(facility.timezone)
    with Writer(table, zone, address, quick_server.writer.password, tmp_path / "newer") as writer:
        writer.put(datetime.now(UTC), current_1=1.0)
        assert writer.drain(PATIENCE)
        writer.note("alarm", 1_700_000_000_000_000, "an event at an older server")
    assert older_server.execute(
        "select writer.state, released is not null, produced, acknowledged from ringlog.writer"
        " where table_name = 'magnet'"
    ).fetchall() == [("ended", True, 1, 1)]
    spool = "select spool from ringlog.event where words = 'an event at an older server'"
    assert older_server.execute(
        f"select sum(produced), sum(acknowledged) from ringlog.ledger where spool = ({spool})".encode()
    ).fetchall() == [(1, 1)]
