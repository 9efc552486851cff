"""EPICS sources against a real IOC, which serves Channel Access and PV Access at once."""

import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from iocs import PUTTING, Ioc, Loader, Programs, Source
from psycopg import sql

from ringlog.gateway import _core
from ringlog.loader.sampling import Cells
from ringlog.loader.schedule import SECOND, now
from ringlog.loader.sources.pv_access import status_of_pva
from ringlog.loader.sources.values import fit
from ringlog.loader.statistics import Statistics
from ringlog.loadtest.experiment.server import log_rows
from ringlog.schema.alarms import status_name
from ringlog.schema.facility import Column, Table
from ringlog_lab.epics import own_ports
from servers import RunningServer, free_port, serving
from waiting import wait_until

HERE = Path(__file__).parent
# papers/002: 2,000 PVs. Their 10 Hz, for which a busy machine has no time, are tested by the load test.
TABLES, PVS = 8, 250
ROWS = 10


@pytest.fixture(scope="module")
def ioc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ioc]:
    environment = own_ports(free_port)
    database = tmp_path_factory.mktemp("ioc") / "test.db"
    database.write_text(
        "".join(
            f'record(calc, "HALF:{number}") {{ field(SCAN, "1 second") field(INPA, "HALF:{number}.VAL")'
            ' field(CALC, "A+1") }\n'.replace("}}", "}")
            for number in range(1, TABLES * PVS + 1)
        )
        + (HERE / "records.db").read_text()
    )
    ioc = Ioc(database, environment)
    ioc.start()
    yield ioc
    ioc.kill()


@pytest.fixture(scope="module")
def epics_server(temporary_directory: Path) -> Iterator[RunningServer]:
    facility = temporary_directory / "epics.toml"
    halves = "".join(
        f'[[table]]\nname = "half_{table}"\nrows = 1000\ncycle = 0.1\nsample = "monitor"\n'
        + "".join(
            f'[[table.column]]\nname = "pv_{number}"\n'
            f'type = "double"\nsignal = "HALF:{table * PVS + number}"\n'
            for number in range(1, PVS + 1)
        )
        for table in range(TABLES)
    )
    facility.write_text(halves + (HERE / "tables.toml").read_text())
    with serving(temporary_directory / "epics", facility=facility) as running:
        yield running


def all_are_connected(connection: psycopg.Connection, table: str) -> bool:
    query = sql.SQL("select * from {} order by time desc, seq_no desc limit 1")
    row = connection.execute(query.format(sql.Identifier("log", table))).fetchone()
    return row is not None and None not in row


def all_have_changed(connection: psycopg.Connection, table: str) -> bool:
    """Whether the log has several values of each PV."""
    columns = connection.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 2",
        [sql.Identifier("log", table).as_string()],
    )
    changes = [sql.SQL("max({0}) > min({0})").format(sql.Identifier(column)) for (column,) in columns]
    query = sql.SQL("select {} from {}").format(sql.SQL(" and ").join(changes), sql.Identifier("log", table))
    return connection.execute(query).fetchone() == (True,)


@pytest.mark.parametrize("protocol", ["ca", "pva"])
def test_2000_pvs(protocol: str, ioc: Ioc, programs: Programs, epics_server: RunningServer) -> None:
    names = [f"half_{table}" for table in range(TABLES)]
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        for name in names:
            connection.execute(sql.SQL("truncate {}").format(sql.Identifier("weeks", name)))
        loader = programs.load(epics_server, protocol, ",".join(names))
        wait_until(
            lambda: loader.is_running() and all(all_are_connected(connection, name) for name in names),
            ioc.log.read_text,
        )
        for name in names:
            connection.execute(sql.SQL("truncate {}").format(sql.Identifier("weeks", name)))
        wait_until(
            lambda: all(
                log_rows(connection, name) >= ROWS and all_have_changed(connection, name) for name in names
            )
        )
        output = loader.stop()
        updates = dropped = 0
        for name in names:
            query = sql.SQL("select * from {} order by time, seq_no").format(sql.Identifier("log", name))
            rows = connection.execute(query, binary=True).fetchall()
            for column in zip(*(row[2:] for row in rows), strict=True):
                counts = [count for count in column if count is not None]
                assert all(later >= earlier for earlier, later in pairwise(counts))
                updates += int(counts[-1] - counts[0]) + 1
                dropped += sum(
                    int(later - earlier) - 1 for earlier, later in pairwise(counts) if later > earlier
                )
    # an IOC on a busy machine overruns its own queues; the number of lost updates does not matter here
    print(
        f"{protocol}: {updates} updates of {TABLES * PVS} PVs, {dropped} dropped; {output.splitlines()[-1]}"
    )
    reported = re.search(r"(\d+) dropped", output.splitlines()[-1])
    assert not reported, output


# Values of the saw with their alarms in its record: one in each state.
STATES = {(4.0, 0, "NO_ALARM"), (6.0, 1, "HIGH"), (9.0, 2, "HIHI")}


def states(connection: psycopg.Connection, since: tuple[Any, ...] | None = None) -> set[tuple[Any, ...]]:
    """Values of the saw with their severity and status in the log, of later rows only."""
    found = connection.execute(
        "select distinct saw, severity, status from log.alarms"
        " where saw is not null and time > coalesce(%s::timestamptz, '-infinity')",
        since or [None],
    )
    return {*found}


EVENTS = {
    ("disconnected", "TEST:SAW"),
    ("connected", "TEST:SAW"),
    ("disconnected", "TEST:NOTHING"),
    ("alarm", "TEST:SAW: MAJOR HIHI"),
    ("alarm", "TEST:SAW: NO_ALARM NO_ALARM"),
}


def events(connection: psycopg.Connection) -> set[tuple[str, str]]:
    return {*connection.execute("select kind, message from ringlog.event where table_name = 'alarms'")}


def newest(connection: psycopg.Connection) -> tuple[Any, ...] | None:
    """The latest row of the log: seq_no, time and the saw first."""
    return connection.execute("select * from log.alarms order by time desc, seq_no desc limit 1").fetchone()


def is_lost(connection: psycopg.Connection) -> bool:
    """Whether the latest row has no value of the saw."""
    row = newest(connection)
    return row is not None and row[2] is None


@pytest.mark.parametrize("protocol", ["ca", "pva"])
def test_alarms_time_stamps_and_disconnects_are_kept(
    protocol: str, ioc: Ioc, programs: Programs, epics_server: RunningServer
) -> None:
    with psycopg.connect(epics_server.dsn, autocommit=True, options="-c timezone=UTC") as connection:
        connection.execute("truncate weeks.alarms")
        loader = programs.load(epics_server, protocol, "alarms")
        # it passes through all its states, disconnects and reconnects
        wait_until(
            lambda: loader.is_running() and states(connection) >= STATES,
            lambda: (states(connection), newest(connection), loader.output(), ioc.log.read_text()),
        )
        ioc.kill()
        wait_until(lambda: is_lost(connection), lambda: newest(connection))
        ioc.start()
        back = connection.execute("select max(time) from log.alarms").fetchone()
        wait_until(lambda: states(connection, back) >= STATES, lambda: states(connection, back))
        if protocol == "pva":
            # a writer reports every half minute, and at its end; reports that could not be sent in the grace
            # period of a stop follow at the next start
            loader.stop()
            written = log_rows(connection, "alarms")
            loader = programs.load(epics_server, protocol, "alarms")
            wait_until(
                lambda: loader.is_running() and log_rows(connection, "alarms") > written, loader.output
            )
        wait_until(lambda: events(connection) >= EVENTS, lambda: EVENTS - events(connection))
        loader.stop()
        rows = connection.execute(
            "select extract(epoch from time)::float8, saw, severity, status, stamp, mode, nothing"
            " from log.alarms order by time, seq_no"
        ).fetchall()
        seen = {(saw, severity, status) for _, saw, severity, status, *_ in rows if saw is not None}
        assert seen >= STATES
        # a record that has not been processed since its IOC started is undefined
        seen = {state for state in seen if state[2] != "UDF"}
        assert all(severity == (0 if saw < 5 else 1 if saw < 8 else 2) for saw, severity, _ in seen), seen
        stamps = [abs(moment - stamp) for moment, saw, _, _, stamp, *_ in rows if saw is not None]
        assert sum(apart < 0.001 for apart in stamps) > 0.8 * len(stamps), "rows have their reading's time"
        assert {mode for *_, mode, _ in rows} >= {"ON", None}
        assert any(saw is None and later is not None for (_, saw, *_), (_, later, *_) in pairwise(rows))
        assert {nothing for *_, nothing in rows} == {None}
        connection.execute("delete from ringlog.event")


@pytest.mark.parametrize("protocol", ["ca", "pva"])
def test_arrays_are_waveforms(
    protocol: str, ioc: Ioc, programs: Programs, epics_server: RunningServer
) -> None:
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        connection.execute("truncate weeks.scope")
        loader = programs.load(epics_server, protocol, "scope")
        query = "select trace from log.scope where trace is not null"
        traces = wait_until(
            lambda: loader.is_running() and connection.execute(query).fetchall(), ioc.log.read_text
        )
        loader.stop()
    assert traces[0] == ([1.5, -2.5, 1e300],)


@pytest.mark.parametrize("protocol", ["ca", "pva"])
def test_values_that_a_column_cannot_hold_are_missing_and_named(
    protocol: str, programs: Programs, epics_server: RunningServer
) -> None:
    expected = {
        "UNFIT:TEXT: text does not fit a int",
        "UNFIT:TRACE: an array does not fit a column",
        "UNFIT:LARGE: 70000 is out of the range of smallint",
        "UNFIT:BROKEN: 2.5 is not a whole number, the column is int",
        "UNFIT:HUGE: 1e+39 is out of the range of real",
    }
    events = "select message from ringlog.event where table_name = 'unfit' and kind = 'unfit'"
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        connection.execute("truncate weeks.unfit")
        connection.execute("delete from ringlog.event")

        def found() -> set[str]:
            return {words for (words,) in connection.execute(events)}

        loader = programs.load(epics_server, protocol, "unfit")
        query = "select count(distinct tick) > 20 and count(mode) > 20 from log.unfit"
        wait_until(lambda: loader.is_running() and connection.execute(query).fetchone() == (True,))
        loader.stop()
        wait_until(lambda: found() >= expected, found)
        # the saw is 0 and 1, then more, and again
        others = {words for words in found() - expected if not words.startswith("UNFIT:SAW: ")}
        assert others == set()
        assert {words[:11] for words in found() - expected} == {"UNFIT:SAW: "}
        counts = connection.execute(
            "select count(text), count(trace), count(large), count(broken), count(huge), count(saw) > 0,"
            " count(*) > count(saw), min(mode), max(mode) from log.unfit"
        ).fetchone()
        assert counts == (0, 0, 0, 0, 0, True, True, 1, 1)


@pytest.mark.parametrize("protocol", ["ca", "pva"])
def test_an_undefined_value_is_no_reading(
    protocol: str, programs: Programs, epics_server: RunningServer
) -> None:
    """A record that was never processed has no time, and one whose value is NaN the alarm UDF."""
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        connection.execute("truncate weeks.undefined")
        connection.execute("truncate weeks.scanned")
        connection.execute("delete from ringlog.event")
        loader = programs.load(epics_server, protocol, "undefined,scanned")

        def noted() -> set[tuple[str, str]]:
            # on a busy machine the source may be late, which is a gap
            return {*connection.execute("select kind, message from ringlog.event where kind <> 'gap'")}

        columns = "count(distinct tick), count(never), count(severity), count(text), count(nan), max(status)"
        for table, wanted in (
            ("undefined", f"{columns}, min(status)"),
            ("scanned", "count(distinct tick), count(never)"),
        ):
            query = f"select {wanted}, min(time) > now() - interval '1 hour' from log.{table}"
            row = wait_until(
                lambda query=query: (
                    loader.is_running()
                    and (row := connection.execute(query.encode()).fetchone())
                    and row[0] > 20
                    and row
                ),
                loader.output,
            )
            assert row[1:] == ((0, 0, 0, 0, 17, 17, True) if table == "undefined" else (0, True))
        loader.stop()
        expected = {
            *(
                ("clock", f"TEST:{name}: it has no time: it was never processed")
                for name in ("NEVER", "NEVER.VAL", "SILENT")
            ),
            ("alarm", "TEST:NAN: INVALID UDF"),
        }
        wait_until(lambda: noted() >= expected, noted)
        assert noted() == expected


@pytest.mark.parametrize("protocol", ["ca", "pva"])
def test_fields_of_a_pv_in_each_type(protocol: str, programs: Programs, epics_server: RunningServer) -> None:
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        connection.execute("truncate weeks.stamped")
        loader = programs.load(epics_server, protocol, "stamped")
        query = (
            "select count(*) filter (where at - to_timestamp(exact) between '-1 us' and '1 us'),"
            " bool_and(severity = 0), array_agg(distinct text)"
            " from log.stamped where at is not null and text is not null"
        )
        row = wait_until(
            lambda: (
                loader.is_running()
                and (row := connection.execute(query).fetchone())
                and row[0] > 20
                and len(row[2]) > 2
                and row
            ),
            loader.output,
        )
        assert row[1:] == (True, ["MAJOR", "MINOR", "NO_ALARM"])
        assert "refused" not in loader.stop()


def test_the_return_of_a_slow_pv_has_its_own_time(
    ioc: Ioc, programs: Programs, epics_server: RunningServer
) -> None:
    """A value that is older than the loss is valid again from the return."""
    updates = ("ROW:SLOW", "d", 7.0, 100.0, 0), ("ROW:TRACE", "ad", [1.0, 2.0], 100.0, 2)
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        loader: Loader

        def rows() -> list[tuple[Any, ...]]:
            assert loader.is_running()
            query = "select value, trace, time < now() - interval '90 s' from log.slow order by time"
            return connection.execute(query).fetchall()

        with Source(ioc.environment, *updates):
            loader = programs.load(epics_server, "pva", "slow")
            wait_until(lambda: rows()[-1:] == [(7.0, [1.0, 2.0], True)], lambda: (rows(), loader.output()))
        wait_until(lambda: rows()[-1:] == [(None, None, False)], lambda: (rows(), loader.output()))
        lost = len(rows())
        with Source(ioc.environment, *updates, ("ROW:SLOW", "d", 7.0, 100.0, 0)):
            wait_until(lambda: rows()[-1:] == [(7.0, [1.0, 2.0], False)], lambda: (rows(), loader.output()))
        times = connection.execute("select time from log.slow order by time, seq_no").fetchall()
        # the outage is between two rows
        assert times[lost - 1] < times[-1]
        loader.stop()
        alarms = (
            "select message from ringlog.event where kind = 'alarm' and table_name = 'slow' order by time"
        )
        wait_until(lambda: connection.execute(alarms).fetchall() == [("ROW:TRACE: MAJOR DEVICE",)] * 2)


def test_every_value_after_an_infinite_one_is_a_row(
    ioc: Ioc, programs: Programs, epics_server: RunningServer
) -> None:
    """A deadband relative to infinity contains no number."""
    values = [5.0, math.inf, 6.0, 7.0, 100.0, -3.0, math.nan, 8.0, 9.0]
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        query = "select value from log.banded order by time, seq_no"
        with Source(ioc.environment, ("ROW:BAND", "d", values[0], 0, 0)) as posting:
            loader = programs.load(epics_server, "pva", "banded")
            for number, value in enumerate(values, 1):
                if number > 1:
                    posting.post(("ROW:BAND", "d", value, 0, 0))
                wait_until(
                    lambda number=number: (
                        loader.is_running() and len(connection.execute(query).fetchall()) == number
                    ),
                    loader.output,
                )
            assert str([value for (value,) in connection.execute(query)]) == str(values)


LONG = "a text that is longer than the forty characters of EPICS's strings"


@pytest.mark.parametrize("protocol", ["ca", "pva"])
def test_texts_that_are_empty_at_first(
    protocol: str, ioc: Ioc, programs: Programs, epics_server: RunningServer
) -> None:
    def put(short: str, long: str) -> None:
        texts = [f"TEST:SHORT={short!r}", f"TEST:LONG={long!r}", f"TEST:CHARS={[*long.encode(), 0]}"]
        command = [sys.executable, "-c", PUTTING, *texts]
        subprocess.run(command, env=os.environ | ioc.environment, check=True)

    ioc.kill()
    ioc.start()
    query = "select distinct short, long, chars from log.texts where tick is not null"
    with psycopg.connect(epics_server.dsn, autocommit=True) as connection:
        connection.execute("truncate weeks.texts")
        loader = programs.load(epics_server, protocol, "texts,scope")

        def come(*texts: str) -> None:
            wait_until(
                lambda: loader.is_running() and texts in connection.execute(query).fetchall(),
                lambda: (connection.execute(query).fetchall(), loader.output()),
            )

        come("", "", "")
        put("on", LONG)
        come("on", LONG, LONG)
        put("", "")
        connection.execute("truncate weeks.texts")
        come("", "", "")
        output = loader.stop()
    assert "refused" not in output


def test_a_time_stamp_far_ahead_moves_no_other_row(
    ioc: Ioc, programs: Programs, epics_server: RunningServer
) -> None:
    def updates(number: float, ahead: float) -> list[tuple[str, str, object, float, int]]:
        return [("TEST:GOOD", "d", number, 0, 0), ("TEST:AHEAD", "d", number, -ahead, 0)]

    query = "select 1 from log.drifting where good = %s and ahead = %s"
    with (
        Source(ioc.environment, *updates(0.0, 0)) as source,
        psycopg.connect(epics_server.dsn, autocommit=True) as connection,
    ):
        loader = programs.load(epics_server, "pva", "drifting")
        # the first one is there
        wait_until(lambda: loader.is_running() and log_rows(connection, "drifting"), loader.output)
        for number, ahead in ((1, 0), (2, 2 * 86_400), (3, 0)):
            source.post(*updates(number, ahead))
            wait_until(
                lambda number=number: (
                    loader.is_running() and connection.execute(query, [number, number]).fetchone()
                ),
                loader.output,
            )
        loader.stop()
        rows = connection.execute(
            "select good, ahead, abs(extract(epoch from time - now()))::int < 1000,"
            " stamp > extract(epoch from now()) from log.drifting"
            " where good > 0 and good = ahead order by time"
        ).fetchall()
        (words,) = connection.execute(
            "select message from ringlog.event where table_name = 'drifting' and kind = 'clock'"
        ).fetchall()
    assert rows == [(1, 1, True, False), (2, 2, True, True), (3, 3, True, False)]
    assert re.fullmatch(
        r"TEST:AHEAD: its time stamp is 17\d{4} s ahead: its readings get the present time", words[0]
    )


def test_an_image_keeps_its_shape(ioc: Ioc, programs: Programs, epics_server: RunningServer) -> None:
    """NTNDArray: the first dimension is the fastest (EPICS normative types)."""
    image = ("TEST:IMAGE", "u2", [[0, 1, 2], [3, 4, 5]], 0, 0)
    with (
        Source(ioc.environment, image, ("TEST:LINE", "f4", [0.5, -1.5, 2.5], 0, 0)),
        psycopg.connect(epics_server.dsn, autocommit=True) as connection,
    ):
        loader = programs.load(epics_server, "pva", "camera")
        query = (
            "select image, width, height, line, length from log.camera"
            " where image is not null and line is not null"
        )
        rows = wait_until(lambda: loader.is_running() and connection.execute(query).fetchall())
        loader.stop()
    assert rows[0] == ([0, 1, 2, 3, 4, 5], 3, 2, [0.5, -1.5, 2.5], 3)


def test_a_reading_at_the_end_of_the_search_is_kept() -> None:
    """A reading that arrives just when the PV is declared lost is not removed with the earlier readings."""
    table = Table("t", 10, 0.01, (Column("c", "PV", "double"),))
    for _ in range(200):
        cells = Cells(table, Statistics())
        signals = _core.Signals(cells.native, [("PV", [0])])
        arguments = (0, [(0, 1.5)], 0, 0, now() // SECOND, 0)
        read = threading.Thread(target=signals.read, args=arguments)
        read.start()
        signals.miss()
        read.join()
        assert cells.native.scan() == (1.5,)


def test_statuses_of_both_protocols_have_one_number_and_name() -> None:
    names = {3: "HIHI", 17: "UDF", 21: "WRITE_ACCESS", 30: "STATUS_30", 102: "DRIVER", 142: "STATUS_42"}
    assert {number: status_name(number) for number in names} == names
    assert status_of_pva(0, "") == 0
    assert status_of_pva(1, "HIHI") == 3
    assert status_of_pva(2, "no answer from the crate") == 102
    assert status_of_pva(42, "") == 142
    assert status_of_pva(-200, "") == 2**15 - 1


def test_values_fit_exactly_or_not_at_all() -> None:
    column = {kind: Column("c", "s", kind) for kind in ("real", "int", "bit", "varchar(5)")}
    assert fit(3, column["real"]) == 3.0
    assert fit(3.0, column["int"]) == 3
    assert fit(1, column["bit"]) is True
    assert fit("ON", column["varchar(5)"]) == "ON"
    for value, kind in ((3.5, "int"), ("3", "real"), (float("nan"), "int")):
        with pytest.raises((TypeError, ValueError)):
            fit(value, column[kind])
