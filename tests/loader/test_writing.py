"""Running writers: their rows are stored, whatever happens meanwhile."""

import os
import random
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import psycopg
import pytest
from psycopg import sql
from tending import tend_until

from ringlog.clients import Address
from ringlog.clients.figures import State
from ringlog.loader.ack_log import read_acknowledgements
from ringlog.loader.sources.simulator import Simulator
from ringlog.loader.supervisor import Job, Supervisor
from ringlog.loader.writer import WriterProcess
from ringlog.loadtest.verification import verify
from ringlog.schema.facility import Facility, Table
from servers import RunningServer
from waiting import wait_until

from .conftest import empty

FACILITY = Path(__file__).with_name("facility.toml")
# Seconds for which a server is unreachable.
AWAY = 3.0
Stored = Callable[[str], list[tuple[Any, ...]]]


def pid_of(supervisor: Supervisor, job: str) -> int:
    """The process of a job, after its restart."""

    def found() -> int | None:
        if job not in supervisor.pids:
            supervisor.tend(0.1)
        return supervisor.pids.get(job)

    pid = wait_until(found, lambda: supervisor.statistics[job].message)
    assert pid is not None
    return pid


def in_step(rows: list[tuple[Any, ...]], ring: int) -> bool:
    """Whether each row has the seq_no after the previous one, and a time of its own."""
    return all(
        later[0] == earlier[0] % ring + 1 and later[1] > earlier[1] for earlier, later in pairwise(rows)
    )


def fresh_time(rows: list[tuple[Any, ...]]) -> datetime:
    latest: datetime = rows[-1][1] if rows else datetime(2026, 1, 1, tzinfo=UTC)
    return latest + timedelta(seconds=1)


def process(
    table: Table,
    facility: Facility,
    address: Address,
    server: RunningServer,
    simulator: Simulator,
    folder: Path,
) -> WriterProcess:
    """It has its spool in a folder, and there its acknowledged rows by the table's name."""
    return WriterProcess(
        table,
        ZoneInfo(facility.timezone),
        address,
        server.writer.password,
        simulator,
        folder / "spool",
        acknowledgements=folder / table.name,
    )


@pytest.mark.long
def test_killed_writers_continue_at_the_next_row(
    quick_server: RunningServer, facility: Facility, address: Address, stored: Stored, tmp_path: Path
) -> None:
    tables = facility.tables[:2]
    simulator = Simulator(seed=3)
    before = {table.name: len(stored(table.name)) for table in tables}
    with Supervisor(
        [
            Job(table.name, process(table, facility, address, quick_server, simulator, tmp_path).run)
            for table in tables
        ]
    ) as supervisor:

        def write_on() -> None:
            """Waits until each has had further rows acknowledged."""
            running = [*supervisor.statistics.values()]
            enough = [one.acknowledged + 7 for one in running]
            tend_until(
                supervisor,
                lambda: all(one.acknowledged >= most for one, most in zip(running, enough, strict=True)),
                lambda: [one.message for one in running],
            )

        supervisor.start()
        for _ in range(3):
            write_on()
            for table in tables:
                os.kill(pid_of(supervisor, table.name), signal.SIGKILL)
        write_on()
        assert [one.restarts for one in supervisor.statistics.values()] == [3, 3]
        assert all(one.state == State.RUNNING for one in supervisor.statistics.values())
    found = verify(quick_server.dsn, tables, tmp_path, simulator)
    for table, one in zip(tables, found, strict=True):
        assert one.acknowledged >= 4 * 7
        assert (one.lost, one.altered, one.in_log) == (0, 0, one.acknowledged)
        rows = stored(table.name)[before[table.name] :]
        assert in_step(rows, table.rows)
        # a kill between acknowledgement and spool has the row sent, and acknowledged, once more
        acknowledged = {*read_acknowledgements(tmp_path / table.name)}
        assert one.acknowledged <= len(acknowledged) + 3
        # at most the interrupted call of each kill is stored without an acknowledgement
        assert len(acknowledged) <= len(rows) <= len(acknowledged) + 3


def test_verification_finds_missing_or_altered_rows(
    quick_server: RunningServer, facility: Facility, address: Address, tmp_path: Path
) -> None:
    table = facility.tables[0]
    simulator = Simulator(seed=4)
    writer = process(table, facility, address, quick_server, simulator, tmp_path)
    with Supervisor([Job(table.name, writer.run)]) as supervisor:
        supervisor.start()
        tend_until(supervisor, lambda: supervisor.statistics[table.name].acknowledged > 3)
    good = verify(quick_server.dsn, [table], tmp_path, simulator)[0]
    assert good.acknowledged > 3
    assert (good.lost, good.altered) == (0, 0)
    # other readings than were sent: in the ring, as far as it has the rows, and in the log
    altered = good.acknowledged + min(good.acknowledged, table.rows)
    assert verify(quick_server.dsn, [table], tmp_path, Simulator(seed=5))[0].altered == altered
    # acknowledgements for a row that was never written
    acknowledgement = struct.pack("<iq", 1, 4_000_000_000_000_000)
    with (tmp_path / table.name).open("ab") as acknowledgements:
        acknowledgements.write(acknowledgement)
    assert verify(quick_server.dsn, [table], tmp_path, simulator)[0].lost == 1


@contextmanager
def waits_at(admin: psycopg.Connection[Any], moment: datetime) -> Iterator[None]:
    """Calls with a row of every_type from this moment on wait until this ends."""
    admin.execute("select pg_advisory_lock(12)")
    admin.execute(
        "create function waits() returns trigger language plpgsql security definer as"
        " $$ begin perform pg_advisory_xact_lock_shared(12); return new; end $$"
    )
    created = "create trigger waits before insert on weeks.every_type for each row when (new.time >= {})"
    admin.execute(sql.SQL(created + " execute function waits()").format(moment))
    yield
    admin.execute("select pg_advisory_unlock(12)")
    admin.execute("drop function waits cascade")


@pytest.mark.long
def test_a_recording_is_stored_exactly_despite_killed_writers(
    quick_server: RunningServer, load: Callable[..., Any], stored: Stored, tmp_path: Path
) -> None:
    empty(quick_server, "every_type")
    begin = fresh_time([])
    dice = random.Random(1)
    expected: list[tuple[Any, ...]] = []
    for number in range(2500):
        real = struct.unpack("<f", struct.pack("<f", dice.uniform(-1e6, 1e6)))[0]
        values = (
            real,
            dice.uniform(-1e300, 1e300),
            dice.choice([-(2**31), 2**31 - 1, number]),
            dice.choice([-(2**15), 2**15 - 1, 0]),
            dice.choice([-(2**63), 2**63 - 1, 2**53 + 1]),
            dice.random() < 0.5,
            dice.choice(["OPERATION", "Störung", 'a "b", c', " blank ", "磁石電源", "x" * 12]),
        )
        row = tuple(None if dice.random() < 0.1 else value for value in values)
        expected.append((number % 1000 + 1, begin + timedelta(microseconds=number * 1001), *row))
    names = "time,every_type/real,a_double,an_int,a_smallint,a_bigint,a_bit,a_varchar"
    with (tmp_path / "every_type.csv").open("w", newline="") as file:
        file.write(names + "\n")
        for _, moment, *row in expected:
            file.write(",".join([moment.isoformat(), *map(cell, row)]) + "\n")
    recording = f"csv:{tmp_path}"

    with psycopg.connect(quick_server.dsn, autocommit=True) as admin, waits_at(admin, expected[2400][1]):
        one = load("--source", recording, "--speed", "inf")
        wait_until(lambda: admin.execute("select 1 from log.every_type where time >= %s", [begin]).fetchone())
        for child in psutil.Process(one.process.pid).children():
            child.kill()
    code, output = one.end()
    assert code == 0, output
    assert "killed by SIGKILL" in output
    assert "1 restarted" in output
    assert stored("every_type") == expected

    code, output = load("--source", recording, "--speed", "inf").end()
    assert code == 0, output
    assert "0 rows acknowledged" in output
    assert "2500 skipped" in output
    assert stored("every_type") == expected


def cell(value: Any) -> str:
    """A reading as CSV."""
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return repr(value) if isinstance(value, float) else str(value).lower()


def test_rows_refused_by_the_server_are_counted_reported_and_skipped(
    load: Callable[..., Any], stored: Stored, tmp_path: Path
) -> None:
    before = stored("every_type")
    begin = fresh_time(before)
    # a facility file that allows more than the server does
    longer = tmp_path / "longer.toml"
    longer.write_text(FACILITY.read_text().replace("varchar(12)", "varchar(40)"))
    texts = ["good", "longer than twelve", "good again"]
    (tmp_path / "every_type.csv").write_text(
        "time,a_varchar\n"
        + "".join(f"{begin + timedelta(seconds=number)},{text}\n" for number, text in enumerate(texts))
    )
    options = ("--source", f"csv:{tmp_path}", "--speed", "inf")
    code, output = load(*options, "--facility", longer).end()
    assert code == 0, output
    refused = (begin + timedelta(seconds=1)).isoformat()
    assert f"every_type: row of {refused} refused: error 8152: Parameter '@a_varchar'" in output
    assert "2 rows acknowledged" in output
    assert "1 refused" in output
    rows = stored("every_type")[len(before) :]
    assert [row[-1] for row in rows] == ["good", "good again"]
    # the place of a refused row in the ring stays as it was
    assert rows[1][0] == rows[0][0] % 1000 + 2


class Cutter:
    """A proxy to the server that can lose a call, or the answer to an executed call."""

    def __init__(self, server: RunningServer, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self.cuts = 0
        self.closed = False
        self._cut: bool | None = None
        self._server = server
        self._listener = listener
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, answer: bool) -> None:
        """Breaks off at the next answer, or else at the next call."""
        self._cut = answer

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.closed:
                    client.close()
                    continue
                server = socket.create_connection((self._server.host, self._server.port))
                threading.Thread(target=self._forward, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, client, True), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self._cut is answers:
                    self._cut = None
                    self.cuts += 1
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutter(server: RunningServer) -> Iterator[Cutter]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Cutter(server, listener)


@pytest.mark.long
def test_unanswered_calls_are_repeated_and_stored_once(
    quick_server: RunningServer, load: Callable[..., Any], stored: Stored
) -> None:
    before = len(stored("beam"))
    with cutter(quick_server) as way:
        one = load("--tables", "beam", "--url", f"tds://writer@127.0.0.1:{way.port}")

        def come(count: int) -> bool:
            assert one.process.poll() is None
            return len(stored("beam")) >= count

        wait_until(lambda: come(before + 5))
        for number in range(6):
            cuts = way.cuts
            way.cut(answer=number % 2 == 0)
            wait_until(lambda cuts=cuts: way.cuts > cuts)
            # the next one cuts a call, and not the login before it
            again = len(stored("beam"))
            wait_until(lambda again=again: come(again + 3))
        # the server is away for a while: the writer reconnects by itself
        way.closed = True
        way.cut(answer=True)
        gone = datetime.now(UTC)
        time.sleep(AWAY)
        back = datetime.now(UTC)
        way.closed = False
        away = len(stored("beam"))
        wait_until(lambda: come(away + 5))
        code, output = one.stop()
    assert code == 0
    rows = stored("beam")[before:]
    assert in_step(rows, 40)
    ended = output.splitlines()[-1]
    figures = {what: int(count) for count, what in re.findall(r"(\d+) (rows|repeated|missed|refused)", ended)}
    assert figures["rows"] == len(rows)
    assert figures["repeated"] >= 7
    assert "refused" not in figures
    # a row for each instant, also while the server was away: instants missed on a busy machine are counted,
    # after the last row too
    without_row = (rows[-1][1] - rows[0][1]) // timedelta(seconds=0.1) + 1 - len(rows)
    assert 0 <= without_row <= figures.get("missed", 0)
    assert sum(gone < row[1] < back for row in rows) > 3
