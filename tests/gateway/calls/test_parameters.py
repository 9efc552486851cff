"""Parameters through real clients: set, refused, read and queried at every moment, at TDS 5.0 and 7.x."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pymssql
import pytest

from servers import Login, RunningServer, ringlog, serving
from tds_clients import Clients, Param, errors_of

FACILITY = Path(__file__).with_name("parameters.toml").read_text()
EVERYTHING = Login("operator", "operate-1")
MAGNETS_ONLY = Login("magnets", "magnets-1")


@pytest.fixture(scope="module")
def parameter_server(
    temporary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    facility = tmp_path_factory.mktemp("parameters") / "facility.toml"
    facility.write_text(FACILITY)
    with serving(temporary_directory / "parameters", facility=facility) as running:
        for login, right in (
            (EVERYTHING, ["--parameter-writer"]),
            (MAGNETS_ONLY, ["--parameter", "magnet_set"]),
        ):
            words = ("user", "add", login.user, *right, "--password-stdin", "--data", running.data)
            added = ringlog(*words, stdin=login.password)
            assert added.returncode == 0, added.stderr
        yield running


@pytest.fixture(scope="module")
def parameter_clients(
    parameter_server: RunningServer, ct_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Clients:
    return Clients.of(parameter_server, ct_program, tmp_path_factory.mktemp("clients"))


@pytest.fixture
def administrator(parameter_server: RunningServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(parameter_server.dsn, autocommit=True) as connection:
        connection.execute(
            "truncate parameter_rows.magnet_set, parameter_rows.bpm_calibration, ringlog.parameter_change,"
            " ringlog.parameter_snapshot"
        )
        yield connection


def given(device: str, current: float, version: int | None = None, comment: str = "tune") -> list[Param]:
    return [
        Param("char", device, "@device"),
        Param("float", str(current), "@current"),
        Param("char", comment, "@comment"),
        Param("int", None if version is None else str(version), "@version", out=True),
    ]


@pytest.mark.parametrize("version", ["5.0", "7.4"])
def test_a_call_sets_a_row_and_returns_its_version(
    parameter_clients: Clients, administrator: psycopg.Connection, version: str
) -> None:
    with parameter_clients.ct(EVERYTHING, version) as client:
        assert client.call("set_magnet_set", given("b1", 10.5)).outputs["@version"] == "1"
        assert client.call("set_magnet_set", given("b1", 11.5, version=1)).outputs["@version"] == "2"
        stale = client.call("set_magnet_set", given("b1", 12.5, version=1))
        assert (stale.error.number, stale.error.severity) == (1205, 13)
        assert "magnet_set (b1) has version 2 and not 1, by a change of operator with" in stale.error.text
        outside = client.call("set_magnet_set", given("b1", 501))
        assert outside.error.number == 547
        assert "current = 501 is outside its limits, -500" in outside.error.text
        shown = client.language("select device, current, version from parameter..magnet_set")
        assert shown.rows == [["b1", "11.5", "2"]]
        assert client.call("get_magnet_set").rows[0][:2] == ["b1", "2"]
    (found,) = administrator.execute(
        "select login, program <> '', machine <> '', comment from ringlog.parameter_changes() limit 1"
    ).fetchall()
    assert found == ("operator", True, True, "tune")


def test_text_at_a_console(parameter_clients: Clients, administrator: psycopg.Connection) -> None:
    answer = parameter_clients.tsql(
        EVERYTHING,
        "declare @v int exec set_magnet_set @device = 'b1', @current = 1.5, @version = @v output select @v",
        'exec set_magnet_set_rows \'[{"device": "b2", "current": 2}, {"device": "b3"}]\', \'two more\'',
        "exec save_snapshot 'golden orbit', 'all is well'",
        "exec set_magnet_set 'b1', 3.5, 'fast'",
        "exec compare_snapshot 'golden orbit'",
        "exec restore_snapshot 'golden orbit'",
        "select device, current, mode from parameter..magnet_set order by device",
    )
    assert answer.messages == []
    assert ["1"] in answer.rows
    assert ["magnet_set", "b1", "changed", "current", "1.5", "3.5"] in answer.rows
    assert answer.rows[-3:] == [["b1", "1.5", "NULL"], ["b2", "2", "NULL"], ["b3", "NULL", "NULL"]]


def test_set_points_with_measured_values(
    parameter_server: RunningServer, parameter_clients: Clients, administrator: psycopg.Connection
) -> None:
    with parameter_clients.pymssql(EVERYTHING) as operator, operator.cursor() as cursor:
        for current in (10.0, 20.0):
            cursor.callproc("set_magnet_set", ("b1", current))
    with psycopg.connect(parameter_server.dsn_of(parameter_server.writer), autocommit=True) as writer:
        for number, offset in ((1, "0"), (2, "1 s")):
            writer.execute(
                "select ringlog.put_sr_mag_ps(row (%s, now() + %s::interval, %s)::online.sr_mag_ps)",
                [number, offset, 19.5 + number],
            )
    query = """
        select measured.value, wanted.current
        from get_signal('sr_mag_ps/current') as measured
        join parameter_history..magnet_set as wanted
          on wanted.device = 'b1' and measured.time >= wanted.valid_from
          and (measured.time < wanted.valid_to or wanted.valid_to is null)
        order by measured.time
    """
    with parameter_clients.pymssql(parameter_server.reader) as reader, reader.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchall() == [(20.5, 20.0), (21.5, 20.0)]


def test_rights_by_table(
    parameter_server: RunningServer, parameter_clients: Clients, administrator: psycopg.Connection
) -> None:
    """A writer of rows may not change parameters, and the writer of one parameter table no other."""

    def number(login: Login, procedure: str, arguments: tuple[object, ...]) -> int:
        with parameter_clients.pymssql(login) as connection, connection.cursor() as cursor:
            try:
                cursor.callproc(procedure, arguments)
            except pymssql.Error as error:
                return errors_of(error).number
            return 0

    magnet, bpm = ("set_magnet_set", ("b1", 1.0)), ("set_bpm_calibration", (1, 1.0))
    for login in (parameter_server.writer, parameter_server.reader):
        assert [number(login, *call) for call in (magnet, bpm)] == [229, 229]
    assert [number(MAGNETS_ONLY, *call) for call in (magnet, bpm)] == [0, 229]
    assert [number(EVERYTHING, *call) for call in (magnet, bpm)] == [0, 0]
    assert number(parameter_server.reader, "get_magnet_set", ()) == 0
    assert number(EVERYTHING, "put_sr_mag_ps", (1, "2026-01-01", 1.0)) == 229
    # they cannot restore a state that differs in a table that is not theirs
    assert number(EVERYTHING, "save_snapshot", ("before",)) == 0
    assert number(EVERYTHING, "set_bpm_calibration", (1, 2.0)) == 0
    assert number(MAGNETS_ONLY, "restore_snapshot", ("before",)) == 229
    assert number(MAGNETS_ONLY, "restore_snapshot", ("before", "only mine", "magnet_set")) == 0
    with psycopg.connect(parameter_server.dsn_of(EVERYTHING), autocommit=True) as direct:
        for statement in (
            "update parameter_rows.magnet_set set current = 1",
            "delete from ringlog.parameter_change",
            "select ringlog.begin_parameter_change('x')",
            "select ringlog.lock_parameters()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                direct.execute(statement)


def test_a_login_for_one_table_can_be_removed(parameter_server: RunningServer) -> None:
    words = ("--data", parameter_server.data)
    added = ringlog(
        "user", "add", "short", "--parameter", "magnet_set", "--password-stdin", *words, stdin="x"
    )
    assert "added as a reader, and of magnet_set" in added.stdout
    unknown = ringlog(
        "user", "add", "nobody_yet", "--parameter", "magnet", "--password-stdin", *words, stdin="x"
    )
    assert "there is no parameter table 'magnet'" in unknown.stderr
    assert ringlog("user", "remove", "short", *words).returncode == 0


DEVICES = [f"b{n}" for n in range(1, 9)]
CLIENTS, CHANGES = 20, 12


class Day:
    """The answers that the clients of a day received: the rows that each change has set or restored."""

    def __init__(self, clients: Clients, dsn: str) -> None:
        self.clients = clients
        self.dsn = dsn
        self.lock = threading.Lock()
        self.set: dict[int, dict[str, float]] = defaultdict(dict)
        # the moment, and the device or None for all
        self.reverted: dict[int, tuple[datetime, str | None]] = {}
        self.snapshots: dict[str, datetime] = {}
        self.faster = 0

    def work(self, number: int) -> None:
        """One client: changes by call, several in one transaction, and changes of rows that it has read
        before.
        """
        random = Random(number)
        version = "7.4" if number % 4 else "7.1"
        with (
            self.clients.pymssql(EVERYTHING, version=version) as connection,
            connection.cursor() as cursor,
        ):
            for index in range(CHANGES):
                rows = {
                    device: float(f"{number}.{index:02}") for device in random.sample(DEVICES, 1 + index % 2)
                }
                if index % 3 == 2:
                    self.read_and_set(cursor, *rows.popitem())
                    continue
                text = "begin transaction declare @c bigint "
                for device, current in rows.items():
                    text += (
                        f"exec set_magnet_set @device = '{device}', @current = {current},"
                        f" @comment = 'shift {number}', @change = @c output "
                    )
                cursor.execute(text + "select @c commit transaction")
                self.note(cursor, rows)
                if index % 4 == 1:
                    self.go_back(f"{number}.{index}", random)

    def read_and_set(self, cursor: Any, device: str, current: float) -> None:
        while True:
            cursor.execute(f"select version from parameter..magnet_set where device = '{device}'")
            found = cursor.fetchone()
            version = 0 if found is None else found[0]
            try:
                cursor.execute(
                    f"declare @c bigint exec set_magnet_set @device = '{device}', @current = {current},"
                    f" @version = {version}, @change = @c output select @c"
                )
            except pymssql.Error as error:
                if errors_of(error).number != 1205:
                    raise
                with self.lock:
                    self.faster += 1
                continue
            self.note(cursor, {device: current})
            return

    def go_back(self, name: str, random: Random) -> None:
        """Names the present state, and restores one device, or all, to another named state."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            ((moment,),) = connection.execute("select ringlog.save_snapshot(%s)", [name]).fetchall()
            with self.lock:
                self.snapshots[name] = moment
                other, then = random.choice(sorted(self.snapshots.items()))
            device = random.choice([None, *DEVICES])
            if device is None:
                text, values = "select change from ringlog.restore_snapshot(%s, 'back')", [other]
            else:
                text = "select change from ringlog.revert_magnet_set(%s, %s, 'back')"
                values = [then, device]
            ((change,),) = connection.execute(text, values).fetchall()
        if change is not None:
            with self.lock:
                assert change not in self.reverted
                self.reverted[change] = (then, device)

    def note(self, cursor: Any, rows: dict[str, float]) -> None:
        (change,) = cursor.fetchone()
        with self.lock:
            assert change not in self.set
            self.set[change] = rows

    def watch(
        self, stop: threading.Event, asked: list[tuple[object, list[tuple[Any, ...]]]], dsn: str
    ) -> None:
        """A reader that queries the present state, and records the answer."""
        with psycopg.connect(dsn, autocommit=True) as reader:
            while not stop.is_set():
                ((moment,),) = reader.execute("select clock_timestamp()").fetchall()
                asked.append((moment, state_at(reader, moment)))


def state_at(connection: psycopg.Connection, moment: object) -> list[tuple[Any, ...]]:
    return connection.execute(
        "select device, current from ringlog.get_magnet_set_at(%s)", [moment]
    ).fetchall()


def at(states: list[tuple[datetime, dict[str, float]]], moment: datetime) -> dict[str, float]:
    """The last of the states that began by then."""
    return next(state for begins, state in reversed(states) if begins <= moment)


def back(now: dict[str, float], then: dict[str, float], device: str | None) -> dict[str, float]:
    """The present state with this device, or all, restored to an earlier one."""
    if device is None:
        return then
    others = {name: current for name, current in now.items() if name != device}
    return others | ({device: then[device]} if device in then else {})


@pytest.mark.long
def test_a_day_of_changes_by_20_clients(
    parameter_server: RunningServer, parameter_clients: Clients, administrator: psycopg.Connection
) -> None:
    """A day's changes, as fast as possible. The state at every moment can be queried later.

    Queries repeated afterwards have the same answers as during the changes, at random moments and at those of
    named states as well.
    """
    day = Day(parameter_clients, parameter_server.dsn_of(EVERYTHING))
    stop, asked = threading.Event(), list[tuple[object, list[tuple[Any, ...]]]]()
    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        dsn = parameter_server.dsn_of(parameter_server.reader)
        watching = pool.submit(day.watch, stop, asked, dsn)
        try:
            for done in [pool.submit(day.work, number) for number in range(CLIENTS)]:
                done.result()
        finally:
            stop.set()
        watching.result()
    changes = administrator.execute(
        'select change, "time", comment from ringlog.parameter_changes() order by change'
    ).fetchall()
    assert {change for change, _, _ in changes} == set(day.set) | set(day.reverted)
    assert day.reverted
    assert sorted(moment for _, moment, _ in changes) == [moment for _, moment, _ in changes]
    state: dict[str, float] = {}
    states = [(changes[0][1] - timedelta(seconds=1), state)]
    for change, moment, _ in changes:
        before = administrator.execute(
            "select device, current from ringlog.get_magnet_set_at(%s - interval '1 microsecond')", [moment]
        ).fetchall()
        assert dict(before) == state
        if change in day.reverted:
            then, device = day.reverted[change]
            state = back(state, at(states, then), device)
        else:
            state = state | day.set[change]
        states.append((moment, state))
        assert dict(state_at(administrator, moment)) == state
    random, (begin, *_), (end, _) = Random(20261121), states[0], states[-1]
    moments = [begin + random.random() * (end - begin) for _ in range(100)]
    for moment in [*moments, *day.snapshots.values()]:
        assert dict(state_at(administrator, moment)) == at(states, moment)
    assert dict(administrator.execute("select device, current from parameter.magnet_set").fetchall()) == state
    assert asked
    for moment, answer in asked:
        assert state_at(administrator, moment) == answer
    overlapping = administrator.execute(
        "select count(*) from parameter_rows.magnet_set a join parameter_rows.magnet_set b"
        " on a.device = b.device and a.version < b.version and a.valid && b.valid"
    ).fetchone()
    assert overlapping == (0,)
