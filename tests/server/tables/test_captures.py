"""Captures: rows around an event, complete and equal to what the writers sent; refusals, rights, reading."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import h5py
import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg import errors
from webs import Web

from ringlog.schema.access.rights import Held
from ringlog.server.logins import Right, add_login
from servers import Login, RunningServer, free_port, ringlog, serving
from waiting import wait_until

VAC = '[[table]]\nname = "vac"'
FACILITY = Path(__file__).with_name("captures.toml")
RECORDER = Login("recorder", "keep-Ω-4")
ONE_TABLE = Login("vac_reader", "one-Ω-5")


@pytest.fixture(scope="module")
def own(temporary_directory: Path) -> Iterator[Web]:
    """A server with HTTP, and the logins recorder and vac_reader."""
    port = free_port()
    options = ("--http", f"127.0.0.1:{port}")
    with serving(temporary_directory / "captures", *options, facility=FACILITY) as running:
        add_login(running.dsn, RECORDER.user, [Right.RECORDER], RECORDER.password)
        only = Held(tables=("vac",))
        add_login(running.dsn, ONE_TABLE.user, [Right.READER], ONE_TABLE.password, tables=only)
        yield Web(running, f"http://127.0.0.1:{port}", "")


@contextmanager
def session(own: Web, login: Login) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(own.server.dsn_of(login), autocommit=True) as connection:
        yield connection


def put(own: Web, table: str, rows: list[tuple[Any, ...]]) -> None:
    """Puts rows of a table, from seq_no and time on."""
    with session(own, own.server.writer) as writer:
        for row in rows:
            values = ", ".join(["%s"] * len(row))
            writer.execute(f"select put_{table}(row ({values})::online.{table})".encode(), row)


def capture(own: Web, tables: str, at: datetime, before: float, after: float, **more: Any) -> int:
    given = {"name": "trip", "at": at, "before": before, "after": after, "tables": tables} | more
    call = ", ".join(f"{name} => %({name})s" for name in given)
    with session(own, RECORDER) as recorder:
        return recorder.execute(f"select ringlog.capture_event({call})".encode(), given).fetchall()[0][0]


def listed(own: Web, number: int) -> dict[str, dict[str, Any]]:
    """What list_captures says about each table of a capture."""
    query = "select to_json(each) from ringlog.list_captures() as each where capture = %s"
    return {row["table_name"]: row for (row,) in own.server.sql(query, [number], login=own.server.reader)}


def settled(own: Web, number: int) -> dict[str, dict[str, Any]]:
    """The same after a pass over the whole span that began after this call."""
    wait_until(
        lambda: all(row["state"] != "copying" for row in listed(own, number).values()),
        lambda: listed(own, number),
    )
    done = datetime.now(UTC)
    # late rows are looked for each minute
    own.server.sql(
        "update ringlog.captured_table set due = now() where capture = %s and due > now()", [number]
    )
    query = (
        "select count(*) from ringlog.captured_table where capture = %s and due < %s + interval '5 seconds'"
    )
    wait_until(lambda: own.server.sql(query, [number, done]) == [(0,)], lambda: listed(own, number))
    return listed(own, number)


def vac_rows(begin: datetime, first: int, last: int) -> list[tuple[int, datetime, float]]:
    return [(n % 1000 + 1, begin + timedelta(seconds=0.1 * n), float(n * n)) for n in range(first, last)]


def test_complete_and_equal(own: Web) -> None:
    """Rows of before, after and from a spool are as the writers sent them; ion's log takes each tenth."""
    at = datetime.now(UTC).replace(microsecond=0)
    begin = at - timedelta(seconds=5)
    vac = vac_rows(begin, 0, 100)
    mag = [(n % 30 + 1, time, n / 7, None, float("inf"), f"s{n}") for n, (_, time, _) in enumerate(vac)]
    put(own, "ion", vac[:40] + vac[45:55])
    put(own, "coil", mag[:55])
    number = capture(own, "ion, coil, gauge", at, 3.0, 2.0, note="klystron 4")
    assert listed(own, number)["ion"]["rows"] == 30, "before is copied at once"
    put(own, "ion", vac[55:])
    # late rows of a spool, which the ring no longer takes for coil: it has 30 rows
    put(own, "ion", vac[40:45])
    put(own, "coil", mag[60:] + mag[55:60])
    with session(own, own.server.writer) as writer:
        for n in range(10):
            time = at + timedelta(seconds=n / 4)
            writer.execute(
                "select put_gauge('gauge:1', %s, %s, 1::smallint, 2::smallint, %s::smallint)", [time, n, n]
            )
    found = settled(own, number)

    span = (at - timedelta(seconds=3), at + timedelta(seconds=2))
    assert own.server.sql(
        "select seq_no, time, pressure from capture.ion where capture = %s order by time", [number]
    ) == [row for row in vac if span[0] <= row[1] < span[1]]
    # the procedure stores infinity in the type's own way: as put stored it in the log
    query = "select seq_no, time, current_1, current_2, current_3, state from {} order by time"
    logged = own.server.sql(query.format(f"log.coil where time >= '{span[0]}' and time < '{span[1]}'"))
    kept = own.server.sql(query.format(f"capture.coil where capture = {number}"))
    assert kept == logged
    assert [row[:3] + row[5:] for row in kept] == [
        row[:3] + row[5:] for row in mag if span[0] <= row[1] < span[1]
    ]
    query = "select signal, time, value, severity, status, nanoseconds from capture.gauge where capture = %s"
    assert own.server.sql(query + " order by time", [number]) == [
        ("gauge:1", at + timedelta(seconds=n / 4), float(n), 1, 2, n) for n in range(8)
    ]
    assert {name: row["rows"] for name, row in found.items()} == {"ion": 50, "coil": 50, "gauge": 8}
    assert all(row["lost"] is None and row["trouble"] is None for row in found.values())
    assert found["gauge"]["filtered"] == '{ "" : ["gauge:1", "gauge:2"] }'


@pytest.fixture(scope="module")
def kept(own: Web) -> tuple[int, datetime]:
    """A capture of vac and mag that is complete, and the time of its event."""
    at = datetime.now(UTC).replace(microsecond=250_000) - timedelta(seconds=2)
    put(own, "vac", [(900 + n, at + timedelta(seconds=0.1 * n), n / 3) for n in range(-5, 5)])
    put(own, "mag", [(9, at, 1.5, 2.5, None, "on")])
    number = capture(own, "vac,mag", at, 0.5, 0.5, late=0)
    wait_until(lambda: all(row["state"] == "ended" for row in listed(own, number).values()))
    return number, at


VALUES = [n / 3 for n in range(-5, 5)]


def test_procedure(own: Web, kept: tuple[int, datetime]) -> None:
    """get_captured over TDS, with zero at the event."""
    number, _ = kept
    with own.server.connect(own.server.reader.user, own.server.reader.password) as tds:
        cursor = tds.cursor()
        cursor.execute("exec get_captured @capture = %d, @signal = 'vac/pressure'", (number,))
        found = cursor.fetchall()
        cursor.execute("select count(*) from capture..mag where capture = %d", (number,))
        assert cursor.fetchall() == [(1,)]
    assert [row[2] for row in found] == VALUES
    assert [row[1] for row in found] == pytest.approx([n / 10 for n in range(-5, 5)], abs=1e-6)


def test_registered_over_tds(own: Web) -> None:
    """A DAQ program gets the number as an output parameter."""
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    put(own, "mag", [(7, at, 8.5, None, None, "off")])
    with own.server.connect(RECORDER.user, RECORDER.password) as tds:
        cursor = tds.cursor()
        cursor.execute(
            "declare @n int; exec capture_event @name = 'tds', @at = %s, @before = 1, @after = 1,"
            " @tables = 'mag', @capture = @n output; select @n",
            (f"{at:%Y-%m-%d %H:%M:%S}",),
        )
        ((number,),) = cursor.fetchall()
    query = "select time, current_1 from capture.mag where capture = %s"
    assert own.server.sql(query, [number]) == [(at, 8.5)]


def test_http(own: Web, kept: tuple[int, datetime]) -> None:
    number, at = kept
    with own.client(own.server.reader) as client:
        (event,) = [each for each in client.get("/api/v1/captures").json() if each["capture"] == number]
        assert event["name"] == "trip"
        assert {each["table_name"]: each["rows"] for each in event["tables"]} == {"vac": 10, "mag": 1}
        lines = client.get(f"/api/v1/captures/{number}/vac").text.splitlines()
        assert lines[0] == "capture,seq_no,time,pressure"
        assert [float(line.split(",")[3]) for line in lines[1:]] == VALUES
        one = client.get(f"/api/v1/captures/{number}").json()
        assert (one["name"], one["tables"]) == ("trip", event["tables"])
        names = ["mag/state", "mag_1/current", "mag_2/current", "mag_3/current", "vac/pressure"]
        assert [each["signal"] for each in one["signals"]] == names
        (vac,) = client.get(f"/api/v1/captures/{number}/vac?format=json").json()["signals"]
        assert (vac["signal"], vac["table"], vac["type"]) == ("vac/pressure", "vac", "double")
        assert vac["samples"] == [
            [(at + timedelta(milliseconds=100 * n)).timestamp() * 1000, value]
            for n, value in zip(range(-5, 5), VALUES, strict=True)
        ]
        mag = client.get(f"/api/v1/captures/{number}/mag?format=json&signal=mag/state").json()["signals"]
        assert [each["signal"] for each in mag] == ["mag/state"]
        for wrong in ("mag?format=json&signal=vac/pressure", "gauge", "gauge?format=json"):
            assert client.get(f"/api/v1/captures/{number}/{wrong}").status_code == 404
        assert client.get(f"/api/v1/captures/{number}/vac?signal=vac/pressure").status_code == 400
        assert client.get("/api/v1/captures/2000000").status_code == 404


@pytest.mark.parametrize("form", ["h5", "parquet"])
def test_export(own: Web, kept: tuple[int, datetime], tmp_path: Path, form: str) -> None:
    number, at = kept
    file = tmp_path / f"trip.{form}"
    table = ("--table", "vac") if form == "parquet" else ()
    url = own.url.replace("//", f"//{own.server.reader.user}@")
    words = ("capture", "export", str(number), "-o", file, *table, "--server", url)
    done = ringlog(*words, RINGLOG_PASSWORD=own.server.reader.password)
    assert done.returncode == 0, done.stderr
    times = [at.timestamp() + n / 10 for n in range(-5, 5)]
    if form == "parquet":
        found = pq.read_table(file)
        assert found["pressure"].to_pylist() == VALUES
        assert [time.timestamp() for time in found["time"].to_pylist()] == pytest.approx(times, abs=1e-6)
        return
    with h5py.File(file) as content:
        assert content.attrs["name"] == "trip"
        assert content["vac/pressure"][:].tolist() == VALUES
        assert content["vac/time"][:].tolist() == pytest.approx(times, abs=1e-6)
        assert content["mag/state"].asstr()[:].tolist() == ["on"]


def test_rights(own: Web, kept: tuple[int, datetime]) -> None:
    """Who may read the table reads its captures; a recorder reads none."""
    number, _ = kept
    with session(own, ONE_TABLE) as reader:
        query = "select table_name from ringlog.list_captures() where capture = %s"
        assert reader.execute(query, [number]).fetchall() == [("vac",)]
        assert reader.execute("select count(*) from capture.vac where capture = %s", [number]).fetchone() == (
            10,
        )
        assert reader.execute("select count(*) from capture.mag").fetchone() == (0,)
        with pytest.raises(errors.InsufficientPrivilege):
            reader.execute("select * from ringlog.get_captured(%s, 'mag_1/current')", [number])
    with session(own, RECORDER) as recorder, pytest.raises(errors.InsufficientPrivilege):
        recorder.execute("select * from capture.vac")
    for login in (own.server.reader, own.server.writer):
        with session(own, login) as other, pytest.raises(errors.InsufficientPrivilege):
            other.execute("select ringlog.capture_event('x', now(), 1, 1, 'vac')")
    with own.client(ONE_TABLE) as client:
        assert client.get(f"/api/v1/captures/{number}/mag").status_code == 404
        assert client.get(f"/api/v1/captures/{number}/vac").status_code == 200


REFUSED = [
    ("none", 1, 1, {}, errors.UndefinedTable, "there is no table none"),
    ("vac", -1, 1, {}, errors.InvalidParameterValue, "must be seconds"),
    ("vac", 1, 1, {"name": " "}, errors.InvalidParameterValue, "must have a name"),
    (" ,", 1, 1, {}, errors.InvalidParameterValue, "name the tables"),
    ("vac", 1, 1, {"at": datetime(2999, 1, 1, tzinfo=UTC)}, errors.InvalidParameterValue, "in the future"),
    ("tiny", 1, 1, {}, errors.ObjectNotInPrerequisiteState, "the ring of table tiny has 2 s, 20 rows"),
    ("vac", 3600, 1, {}, errors.ObjectNotInPrerequisiteState, "the ring of table vac has 100 s"),
]


@pytest.mark.parametrize(("tables", "before", "after", "more", "error", "message"), REFUSED)
def test_refused(
    own: Web,
    tables: str,
    before: float,
    after: float,
    more: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    """A refused call keeps nothing."""
    there = own.server.sql("select count(*) from ringlog.capture")
    given = {"at": datetime.now(UTC)} | more
    with pytest.raises(error, match=message):
        capture(own, tables, given.pop("at"), before, after, **given)
    assert own.server.sql("select count(*) from ringlog.capture") == there


def test_full_disk_is_refused(own: Web) -> None:
    with psycopg.connect(own.server.dsn) as admin:
        # in one transaction, since the server deletes a reason that does not hold when it first looks
        admin.execute("insert into ringlog.capture_refused (reason) values ('the disk is nearly full: 1 GB')")
        with pytest.raises(errors.DiskFull, match="capture_event: the disk is nearly full: 1 GB"):
            admin.execute("select ringlog.capture_event('trip', now(), 1, 1, 'vac')")
        admin.rollback()


def test_expired_and_forgotten(own: Web, kept: tuple[int, datetime]) -> None:
    """Both are deleted with their rows; other captures stay."""
    at = kept[1]
    expired, forgotten = (capture(own, "vac", at, 1, 1, keep_days=days) for days in (0, None))
    with session(own, RECORDER) as recorder:
        recorder.execute("select ringlog.forget_capture(%s)", [forgotten])
        with pytest.raises(errors.UndefinedObject):
            recorder.execute("select ringlog.forget_capture(%s)", [forgotten])
    wait_until(lambda: not listed(own, expired))
    query = "select count(*) from capture.vac where capture = any(%s)"
    assert own.server.sql(query, [[expired, forgotten]]) == [(0,)]
    assert own.server.sql(query, [[kept[0]]]) == [(10,)]


def test_one_scan_for_all_captures(own: Web) -> None:
    """A look reads a ring as often for twenty captures of its table as for one."""
    at, scans = datetime.now(UTC), []
    put(own, "beat", [(n, at, 1.0) for n in range(1, 4)])
    query = (
        "select sum(seq_scan + coalesce(idx_scan, 0)) from pg_stat_xact_user_tables"
        " where relid = 'online.beat'::regclass"
    )
    with psycopg.connect(own.server.dsn) as admin:
        for more in (1, 19):
            for _ in range(more):
                admin.execute("select ringlog.capture_event('scans', %s, 1, 1, 'beat')", [at])
            admin.execute("update ringlog.captured_table set due = now() where table_name = 'beat'")
            before = admin.execute(query).fetchall()[0][0]
            admin.execute("select ringlog.copy_captured('beat')")
            scans.append(admin.execute(query).fetchall()[0][0] - before)
        counts = admin.execute("select distinct rows from ringlog.list_captures('scans')")
        assert counts.fetchall() == [(3,)]
        admin.rollback()
    assert scans[0] > 0
    assert scans[1] == scans[0]


def test_ring_turns_over(own: Web) -> None:
    """Rows that the ring has lost before a late look are named; those that the log took are kept."""
    at = datetime.now(UTC).replace(microsecond=0)
    rows = [(n % 150 + 1, at + timedelta(milliseconds=5 * n), float(n)) for n in range(300)]
    put(own, "pulse", rows[:20])
    number = capture(own, "pulse", at, 1.0, 2.0)
    with psycopg.connect(own.server.dsn) as admin:
        admin.execute("lock table ringlog.one_capture in exclusive mode")
        known = admin.execute("select copied from ringlog.captured_table where capture = %s", [number])
        ((copied,),) = known.fetchall()
        put(own, "pulse", rows[20:])
    found = settled(own, number)["pulse"]
    begin, end = (datetime.fromisoformat(each) for each in found["lost"][len("rows from ") :].split(" to "))
    assert begin == copied
    assert end == rows[150][1]
    kept = own.server.sql("select time, height from capture.pulse where capture = %s order by time", [number])
    assert kept == [
        (time, height)
        for n, (seq_no, time, height) in enumerate(rows)
        if n < 20 or n >= 150 or seq_no % 10 == 1
    ]


def events(own: Web, name: str) -> list[tuple[datetime, str]]:
    return own.server.sql(
        'select "time", note from ringlog.list_captures(%s) group by 1, 2 order by 1', [name]
    )


def test_rule(own: Web) -> None:
    """A signal that leaves its alarm limits starts a capture, once in an hour; others do not."""
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=3)
    readings = [1.0, 4.5, float("nan"), None, 5.5, 6.5, 1.0, 7.5]
    rows = [(n + 1, at + timedelta(seconds=n / 4), 3.0, v, True) for n, v in enumerate(readings)]
    put(own, "klystron", rows)
    wait_until(lambda: events(own, "klystron trip"))
    assert events(own, "klystron trip") == [
        (at + timedelta(seconds=1), "reflected power: klystron_2/power = 5.5, outside -1 to 5")
    ]
    query = "select pause, latest, trouble from ringlog.capture_rule where name = 'klystron trip'"
    assert own.server.sql(query) == [(3600.0, at + timedelta(seconds=1), None)]
    query = (
        "select capture, table_name, ends - begins, round(extract(epoch from expires - now()) / 86400)"
        " from ringlog.list_captures('klystron trip')"
    )
    found = own.server.sql(query)
    number = found[0][0]
    assert found == [(number, table, timedelta(seconds=3), 90) for table in ("coil", "klystron", "vac")]
    kept = "select power_2 from capture.klystron where capture = %s order by time"
    wait_until(lambda: own.server.sql(kept, [number])[-1:] == [(7.5,)])
    assert len(own.server.sql(kept, [number])) == len(readings)


def test_rule_of_samples(own: Web) -> None:
    """A signal that was outside before, or without limits, starts none; a refusal is shown and logged."""
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=3)
    before = at - timedelta(hours=1)

    def send(signal: str, time: datetime, value: float | None) -> None:
        with session(own, own.server.writer) as writer:
            writer.execute("select put_probe(%s, %s, %s::real)", [signal, time, value])

    send("probe:1", before, 11.0)
    send("probe:1", at, 12.0)
    send("probe:2", at, 1e9)
    send("probe:1", at + timedelta(seconds=0.5), 9.0)
    send("probe:1", at + timedelta(seconds=1), -0.5)
    wait_until(lambda: events(own, "probe trip"))
    expected = [(at + timedelta(seconds=1), "probe:1 = -0.5, outside 0 to 10")]
    assert events(own, "probe trip") == expected
    query = "select trouble from ringlog.capture_rule where name = 'too long'"
    wait_until(lambda: own.server.sql(query) != [(None,)])
    trouble = own.server.sql(query)[0][0]
    assert trouble.startswith("capture_event: the ring of table tiny has 2 s, 20 rows")
    log = own.server.data.with_name("captures.stderr")
    wait_until(lambda: f"capture too long: {trouble}" in log.read_text())
    assert events(own, "too long") == []
    assert events(own, "probe trip") == expected


def test_renamed_and_restored(temporary_directory: Path, tmp_path: Path) -> None:
    """A capture goes on after its table is renamed, under the former name, and after a restore."""
    data, file = temporary_directory / "captures_renamed", tmp_path / "facility.toml"
    tmp_path.chmod(0o755)
    text = FACILITY.read_text()
    file.write_text(text)
    at = datetime.now(UTC).replace(microsecond=0)
    rows = [(n + 1, at + timedelta(seconds=n / 10), float(n)) for n in range(5)]

    def put_next(server: RunningServer, table: str) -> None:
        row = rows[len(sent)]
        server.sql(f"select put_{table}(row (%s, %s, %s)::online.{table})", row, login=server.writer)
        sent.append(row)
        query = "select seq_no, time, pressure from capture.vac where capture = 1 order by time"
        wait_until(lambda: server.sql(query, login=server.reader) == sent)
        listing = "select table_name, rows, trouble from ringlog.list_captures() where capture = 1"
        assert server.sql(listing, login=server.reader) == [("vac", len(sent), None)]

    sent: list[tuple[Any, ...]] = []
    with serving(data, facility=file) as running:
        running.sql("select ringlog.capture_event('x', %s, 1, 1, 'vac')", [at])
        put_next(running, "vac")
    renamed = text.replace(VAC, '[[table]]\nname = "vacuum"\nrenamed_from = "vac"')
    file.write_text(renamed.replace('["vac", ', '["vacuum", '))
    with serving(data, facility=file) as running:
        put_next(running, "vacuum")
        put_next(running, "vacuum")
        values = "select value from ringlog.get_captured(1, 'vac/pressure')"
        assert running.sql(values, login=running.reader) == [(0.0,), (1.0,), (2.0,)]
        running.sql("select ringlog.capture_event('y', %s, 1, 1, 'vacuum')", [at])
        tables = "select capture, table_name from ringlog.list_captures()"
        assert running.sql(tables, login=running.reader) == [(1, "vac"), (2, "vacuum")]
        copies = temporary_directory / "captures_backup"
        made = ringlog("backup", copies, "--data", data, timeout=200)
        assert made.returncode == 0, made.stderr
    new = temporary_directory / "captures_restored"
    restored = ringlog("restore", copies, "--data", new, timeout=200)
    assert restored.returncode == 0, restored.stderr
    with serving(new, facility=file) as running:
        put_next(running, "vacuum")
        assert running.sql("select count(*) from capture.vacuum", login=running.reader) == [(4,)]


def test_changed_and_dropped_tables(temporary_directory: Path, tmp_path: Path) -> None:
    """A capture stays readable when its table gets a column and when it is dropped."""
    data, file = temporary_directory / "captures_changed", tmp_path / "facility.toml"
    tmp_path.chmod(0o755)
    text = FACILITY.read_text()
    file.write_text(text)
    at = datetime.now(UTC)

    def event(tables: str) -> int:
        query = "select ringlog.capture_event('x', %s, 1, 1, %s, late => 0)"
        return running.sql(query, [at, tables])[0][0]

    with serving(data, facility=file) as running:
        running.sql("select put_mag(row (1, %s, 1, 2, 3, 'a')::online.mag)", [at], login=running.writer)
        first = event("mag")
        wait_until(lambda: running.sql("select true from ringlog.captured_table where due is null"))
    wider = text.replace(
        'name = "state"\ntype = "varchar(20)"',
        'name = "state"\ntype = "varchar(20)"\n[[table.column]]\nname = "fan"\ntype = "int"',
    )
    file.write_text(wider)
    later = at + timedelta(seconds=0.5)
    with serving(data, facility=file) as running:
        running.sql("select put_mag(row (2, %s, 4, 5, 6, 'b', 7)::online.mag)", [later], login=running.writer)
        second = event("mag")
        query = "select capture, current_1, state, fan from capture.mag order by capture, seq_no"
        expected = [(first, 1.0, "a", None), (second, 1.0, "a", None), (second, 4.0, "b", 7)]
        assert running.sql(query, login=running.reader) == expected
        wait_until(lambda: not running.sql("select true from ringlog.captured_table where due is not null"))
    mag, others = text[: text.index(VAC)], text[text.index(VAC) :]
    file.write_text("timezone = 'UTC'\n" + others)
    dropped = ringlog("facility", "drop", "mag", "--data", data, stdin="mag\n")
    assert dropped.returncode == 0, dropped.stderr
    with serving(data, facility=file) as running:
        assert running.sql(query, login=running.reader) == expected
        assert running.sql("select count(*) from ringlog.list_captures()", login=running.reader) == [(2,)]
        with pytest.raises(errors.UndefinedTable):
            event("mag")
    file.write_text(mag.replace('"varchar(20)"', '"int"') + others)
    with serving(data, facility=file) as running:
        with pytest.raises(errors.DatatypeMismatch, match="its column state is character varying"):
            event("mag")
        assert running.sql(query, login=running.reader) == expected
