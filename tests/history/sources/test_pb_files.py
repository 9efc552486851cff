"""An Archiver Appliance's own files are imported into tables of samples and of rows: each sample once,
unchanged.

The files are written with the generated classes of its messages (tests/epics_event.py).
"""

import random
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from case_tables import cases
from epics_event import message

from ringlog.history import sampled
from ringlog.history.archive.archiving import archive
from ringlog.history.connection import connect
from ringlog.history.incoming import Description, Incoming, IncomingError
from ringlog.history.migration.migrating import Existing, Migration, MigrationError
from ringlog.history.migration.progress import Moved, progress
from ringlog.history.reading import read
from ringlog.history.signals import locations
from ringlog.history.sources.pb_files import PbRows, PbSamples, find, fits, nanoseconds
from ringlog.history.summaries.summarising import summarise
from ringlog.history.verification import problems_of
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, History, Retention, SampleSignal, SampleTable, Table
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from servers import ringlog, run, serving

NOW = datetime(2026, 6, 10, tzinfo=UTC)
BEGIN = datetime(2025, 12, 24, 6, tzinfo=UTC)
"""four weeks of a sample each ten minutes, over the end of a year"""
COUNT = 4032
PVS = ("SR:I1", "SR:V-1", "SR:Gate", "SR:Name", "SR:Spare")
PAYLOADS = {"SR:I1": 6, "SR:V-1": 2, "SR:Gate": 3, "SR:Name": 0, "SR:Spare": 6}
MESSAGES = {0: "ScalarString", 2: "ScalarFloat", 3: "ScalarEnum", 6: "ScalarDouble", 13: "VectorDouble"}
MESSAGES |= {1: "ScalarShort", 4: "ScalarByte", 5: "ScalarInt", 7: "VectorString", 8: "VectorShort"}
MESSAGES |= {9: "VectorFloat", 10: "VectorEnum", 11: "VectorChar", 12: "VectorInt"}
PLAIN = Description()

Sample = tuple[int, Any, int, int]
"""nanoseconds since 1970, value, severity, status"""


def escaped(line: bytes) -> bytes:
    """Escaped by the table in the appliance's documentation."""
    return line.replace(b"\x1b", b"\x1b\x01").replace(b"\n", b"\x1b\x02").replace(b"\r", b"\x1b\x03") + b"\n"


def pb(pv: str, payload: int, samples: Iterable[Sample], year: int, **fields: str) -> bytes:
    """A file of samples with these EPICS fields."""
    header = message("PayloadInfo")(type=payload, pvname=pv, year=year, elementCount=1)
    header.headers.add(name="EGU", val="mA")
    begin = nanoseconds(datetime(year, 1, 1, tzinfo=UTC))
    lines = [escaped(header.SerializeToString())]
    for time, value, severity, status in samples:
        event = message(MESSAGES[payload])(secondsintoyear=(time - begin) // 10**9, nano=time % 10**9)
        if isinstance(value, list):
            event.val.extend(value)
        else:
            event.val = value
        if severity:
            event.severity = severity
        if status:
            event.status = status
        for name, text in fields.items():
            event.fieldvalues.add(name=name, val=text)
        lines.append(escaped(event.SerializeToString()))
    return b"".join(lines)


def samples_of(pv: str) -> list[Sample]:
    """Values with bytes that are escaped, NaN and infinity; alarms; times with all of their nanoseconds."""
    chance = random.Random(pv)
    found = []
    for number in range(COUNT):
        time = nanoseconds(BEGIN) + number * 600 * 10**9 + chance.randrange(500 * 10**9)
        value: Any = chance.choice([number / 8, 10.0, float("nan"), float("inf"), -3.25])
        if pv == "SR:Gate":
            value = chance.choice([0, 1])
        elif pv == "SR:Name":
            value = chance.choice(["", "größe\n", "\x1b\r", f"{number}"])
        alarm = number % 40 == 39
        found.append((time, value, 2 * alarm, 4 * alarm))
    return found


def write(folder: Path, pv: str, samples: Iterable[Sample], form: str, payload: int, **fields: str) -> None:
    """Files of parts of time, each named like the appliance's."""
    parts: dict[str, list[Sample]] = {}
    for sample in samples:
        parts.setdefault(f"{datetime.fromtimestamp(sample[0] // 10**9, UTC):{form}}", []).append(sample)
    key = folder / pv.replace(":", "/").replace("-", "/")
    key.parent.mkdir(parents=True, exist_ok=True)
    for part, of_part in parts.items():
        key.with_name(f"{key.name}:{part}.pb").write_bytes(pb(pv, payload, of_part, int(part[:4]), **fields))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two stores: days of the last week, years and months before. The first hour of the day store was copied
    and not deleted."""
    folder = tmp_path / "stores"
    edge = nanoseconds(BEGIN + timedelta(weeks=3))
    for number, pv in enumerate(PVS):
        samples = samples_of(pv)
        kept = [each for each in samples if each[0] < edge + 3600 * 10**9]
        moved = [each for each in samples if each[0] >= edge]
        write(folder / "lts", pv, kept, "%Y_%m" if number % 2 else "%Y", PAYLOADS[pv])
        write(folder / "mts", pv, moved, "%Y_%m_%d", PAYLOADS[pv])
    return folder


@pytest.fixture
def new(engine: sa.Engine, conninfo: str, tmp_path: Path) -> Iterator[psycopg.Connection]:
    """A facility with an archive and no rows: the PV of a signal is its name, or its address."""
    signals = (SampleSignal("SR:I1"), SampleSignal("gap", address="SR:V-1"), SampleSignal("SR:Gate"))
    tables = (
        SampleTable("pvs", ColumnType.of("double"), signals=signals),
        SampleTable("names", ColumnType.of("text"), signals=(SampleSignal("SR:Name"),)),
    )
    columns = ("current", "SR:Spare", "double"), ("gate", "gate", "bit"), ("alarm", "alarm", "smallint")
    rows = Table("ring", 10, 1.0, tuple(Column(a, b, ColumnType.of(c)) for a, b, c in columns))
    history = History(Retention(2, "week"), str(tmp_path / "archive"))
    install(engine, Facility("test", "UTC", (rows,), sample_tables=tables, history=history))
    maintain(engine, NOW)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


def numbers(connection: psycopg.Connection, table: str) -> dict[str, int]:
    query = "select coalesce(nullif(address, ''), signal), number from ringlog.sample_signal"
    return dict(connection.execute(query + " where table_name = %s", [table]).fetchall())


def move(
    conninfo: str,
    table: str,
    source: PbSamples | PbRows,
    existing: Existing = Existing.REFUSE,
) -> list[Moved]:
    described = getattr(source, "described", PLAIN)
    return [*Migration(conninfo, table, source, described, existing=existing, now=NOW).run()]


def stored(conninfo: str, name: str) -> list[Sample]:
    with closing(connect(conninfo)) as connection:
        (location,) = locations(connection, [name])[name]
        batches = [*sampled.read(connection, location, datetime(2020, 1, 1, tzinfo=UTC), NOW)]
    return [
        (nanoseconds(row["time"]) + row["nanoseconds"], row[location.column], row["severity"], row["status"])
        for batch in batches
        for row in batch.to_pylist()
    ]


def plain(samples: Iterable[Sample]) -> list[Sample]:
    return [(time, "NaN" if value != value else value, *alarms) for time, value, *alarms in samples]


SIGNALS = {"SR:I1": "SR:I1", "gap": "SR:V-1", "SR:Gate": "SR:Gate"}
"""PVs by their signals"""


def test_samples_become_weeks(conninfo: str, new: psycopg.Connection, tree: Path) -> None:
    source = PbSamples(tree, PLAIN, numbers(new, "pvs"))
    assert source.unknown == ["SR:Name", "SR:Spare"]
    moved = move(conninfo, "pvs", source)
    assert [f"{each.week.start:%m-%d}" for each in moved] == ["12-22", "12-29", "01-05", "01-12", "01-19"]
    assert sum(each.rows for each in moved) == sum(each.values for each in moved) == 3 * COUNT
    for name, pv in SIGNALS.items():
        assert plain(stored(conninfo, name)) == plain(samples_of(pv)), name
    # six samples of an hour were in both stores
    assert [*source.remarks()] == ["18 repeated samples: left out"]
    assert moved[-1].fraction == 1
    assert new.execute("select count(*) from weeks.pvs").fetchone() == (0,)
    newest = new.execute("select ringlog.get_pvs_at('infinity', %s)::text", [numbers(new, "pvs")["SR:Gate"]])
    time, value, *_ = samples_of("SR:Gate")[-1]
    ((text,),) = newest.fetchall()
    assert f"{datetime.fromtimestamp(time // 10**9, UTC):%Y-%m-%d %H:%M:%S}" in text
    assert f",{value}," in text
    assert move(conninfo, "pvs", source) == []
    summarise(conninfo, NOW, enough=1)
    assert [*problems_of(new)] == []
    query = "select sum(each) from summary.pvs, unnest(n) as each where level = 3600 and column_name = %s"
    finite = sum(value == value for _, value, *_ in samples_of("SR:I1"))
    assert new.execute(query, [str(numbers(new, "pvs")["SR:I1"])]).fetchone() == (finite,)
    source = PbSamples(tree, PLAIN, numbers(new, "names"))
    assert sum(each.rows for each in move(conninfo, "names", source)) == COUNT
    assert stored(conninfo, "SR:Name") == samples_of("SR:Name")


_KILLED = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from ringlog.history.migration import migrating as migration
from ringlog.history.incoming import Description
from ringlog.history.sources.pb_files import PbSamples

conninfo, folder, now, step, calls, *numbers = sys.argv[1:]
found, left = getattr(migration, step), [None] * int(calls)

def killed(*values, **more):
    left.pop()
    done = found(*values, **more)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(migration, step, killed)
pvs = dict(zip(numbers[::2], map(int, numbers[1::2])))
source = PbSamples(Path(folder), Description(), pvs)
moment = datetime.fromisoformat(now)
print(*migration.Migration(conninfo, "pvs", source, Description(), now=moment).run())
"""


def test_kills_lose_and_repeat_nothing(conninfo: str, new: psycopg.Connection, tree: Path) -> None:
    pvs = [str(each) for pair in numbers(new, "pvs").items() for each in pair]
    for step, calls in (("note", 1), ("tried", 2), ("tried", 1), ("note", 2)):
        words = (conninfo, str(tree), NOW.isoformat(), step, str(calls), *pvs)
        killed = run(sys.executable, "-c", _KILLED, *words)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    moved = move(conninfo, "pvs", PbSamples(tree, PLAIN, numbers(new, "pvs")))
    assert [f"{each.week.start:%m-%d}" for each in moved] == ["01-05", "01-12", "01-19"]
    for name, pv in SIGNALS.items():
        assert plain(stored(conninfo, name)) == plain(samples_of(pv)), name
    with psycopg.connect(conninfo) as connection:
        (done,) = progress(connection)
    assert (done.rows, done.is_done, done.fraction) == (3 * COUNT, True, 1)


def test_further_pvs_are_merged(conninfo: str, new: psycopg.Connection, tree: Path, tmp_path: Path) -> None:
    """Signals added later are merged into the existing weeks, and so is a late sample."""
    every = numbers(new, "pvs")
    first = {name: number for name, number in every.items() if name != "SR:V-1"}
    move(conninfo, "pvs", PbSamples(tree, PLAIN, first))
    (time, *_), *_ = samples_of("SR:Gate")
    new.execute(
        "select ringlog.put_pvs_batch(array[%s], array[%s], array[7.5])", [every["SR:Gate"], time + 1]
    )
    [*archive(conninfo, NOW, pauses=0)]
    source = PbSamples(tree, PLAIN, every)
    with pytest.raises(MigrationError, match=r"the archive has .* rows of the week of 2025-12-22 already"):
        move(conninfo, "pvs", source)
    moved = move(conninfo, "pvs", source, Existing.MERGE)
    assert sum(each.repeated for each in moved) == 2 * COUNT
    assert sum(each.conflicting for each in moved) == 0
    late = {"SR:Gate": [(time + 1, 7.5, 0, 0)]}
    for name, pv in SIGNALS.items():
        assert plain(stored(conninfo, name)) == plain(
            sorted([*samples_of(pv), *late.get(pv, [])], key=lambda s: s[0])
        )


def test_rows_have_the_samples_of_one_time(conninfo: str, new: psycopg.Connection, tmp_path: Path) -> None:
    """A column is a PV, its alarm or a field; times of a single PV have null for the others."""
    at = nanoseconds(BEGIN)
    current = [(at + number * 10**9, number / 4, number % 3, 0) for number in range(100)]
    gate = [(at + number * 2 * 10**9, number % 2, 0, 0) for number in range(100)]
    write(tmp_path / "pb", "SR:Spare", current, "%Y_%m_%d_%H", 6, EGU="kA", HIHI="7")
    write(tmp_path / "pb", "SR:Gate", gate, "%Y", 3)
    described = Description(columns={"current": "SR:Spare", "gate": "SR:Gate", "alarm": "SR:Spare.SEVR"})
    source = PbRows(tmp_path / "pb", described)
    move(conninfo, "ring", source)
    found = pa.Table.from_batches(read(conninfo, "ring", ["current", "gate", "alarm"])).to_pylist()
    expected = {time: {"current": value, "gate": None, "alarm": alarm} for time, value, alarm, _ in current}
    for time, value, *_ in gate:
        expected.setdefault(time, {"current": None, "alarm": None})["gate"] = bool(value)
    assert [(nanoseconds(row["time"]), row["current"], row["gate"], row["alarm"]) for row in found] == [
        (time, row["current"], row["gate"], row["alarm"]) for time, row in sorted(expected.items())
    ]
    assert [*source.remarks()] == [
        "EPICS's fields that samples had are left out: EGU of 100, HIHI of 100 samples"
    ]


@pytest.mark.parametrize(("payload", "kind", "values"), cases(__file__, "every_type_of_values"))
def test_every_type_of_values(tmp_path: Path, payload: int, kind: str, values: list[Any]) -> None:
    def sent(value: Any) -> Any:
        match payload:
            case 4:
                return bytes([value & 255])
            case 11:
                return bytes(point & 255 for point in value)
        return value

    at = nanoseconds(BEGIN)
    samples = [(at + number * 1000, sent(value), 0, 0) for number, value in enumerate(values)]
    write(tmp_path, "A:B", samples, "%Y_%m_%d_%H_%M", payload, EGU="V")
    target = pa.list_(pa.string()) if kind == "text[]" else ColumnType.of(kind).arrow
    schema = pa.schema(
        [
            ("seq_no", pa.int32()),
            ("time", pa.timestamp("us", "UTC")),
            ("value", target),
            ("unit", pa.string()),
        ]
    )
    source = PbRows(tmp_path, Description(columns={"value": "A:B", "unit": "A:B.EGU"}))
    came = source.batches(schema, None, NOW)
    (batch,) = Incoming(schema, {}, 10, source.described).batches(came, None, NOW)
    assert batch["value"].to_pylist() == pa.array(values, target).to_pylist()
    assert batch["unit"].to_pylist() == ["V"] * len(values)


def test_values_that_cannot_be_read_exactly_are_refused(tmp_path: Path) -> None:
    at = nanoseconds(BEGIN)
    right = [(at + number * 10**9, number + 0.5, 0, 0) for number in range(5)]

    def read_as(kind: str, described: Description = PLAIN) -> list[Any]:
        source = PbRows(tmp_path, replace(described, columns={"value": "A:B"}))
        schema = pa.schema([("time", pa.timestamp("us", "UTC")), ("value", ColumnType.of(kind).arrow)])
        found = [value for batch in source.batches(schema, None, NOW) for value in batch["value"].to_pylist()]
        return [*found, *source.remarks()]

    write(tmp_path, "A:B", right, "%Y", 6)
    with pytest.raises(IncomingError, match=r"column A:B is double and value int32"):
        read_as("int")
    file = tmp_path / "A" / "B:2025.pb"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(IncomingError, match=r"B:2025.pb: line 6 at byte \d+: the last line has no end"):
        read_as("double")
    *left, count, damage = read_as("double", Description(damaged="skip"))
    assert (left, count) == ([0.5, 1.5, 2.5, 3.5], "1 damaged lines: left out")
    assert re.fullmatch(rf"{file}: line 6 at byte \d+: the last line has no end", damage)
    file.write_bytes(pb("A:B", 6, [right[0], (right[0][0], 9.0, 0, 0), *right[1:]], 2025))
    with pytest.raises(IncomingError, match=r"PV A:B has two samples at 2025-12-24 06:00:00"):
        read_as("double")
    assert read_as("double", Description(repeated="first"))[:3] == [0.5, 1.5, 2.5]
    (tmp_path / "A" / "B:2024.pb").write_bytes(whole)
    with pytest.raises(IncomingError, match=r"B:2024.pb has samples outside of the time of its name"):
        read_as("double")
    (tmp_path / "A" / "B:2024.pb").unlink()
    file.write_bytes(whole)
    (tmp_path / "A" / "B:2026.pb").write_bytes(pb("A:C", 6, [], 2026))
    with pytest.raises(IncomingError, match=r"B:2026.pb has the PV A:C, and others of its name A:B"):
        read_as("double")


@pytest.mark.parametrize(
    ("payload", "kind", "values"), cases(__file__, "a_line_that_a_crash_has_cut_is_damaged")
)
@pytest.mark.parametrize("fields", [{}, {"EGU": "mA"}])
def test_a_line_that_a_crash_has_cut_is_damaged(
    tmp_path: Path, payload: int, kind: str, values: list[Any], fields: dict[str, str]
) -> None:
    """The appliance appends to its files: the next message follows the begin of another in its line."""

    def sent(value: Any) -> Any:
        if payload in (4, 11):
            return bytes(point & 255 for point in ([value] if payload == 4 else value))
        return value

    def came(damaged: Literal["refuse", "skip"]) -> tuple[list[Any], list[str]]:
        source = PbRows(tmp_path, Description(columns={"value": "A:B"}, damaged=damaged))
        schema = pa.schema([("time", pa.timestamp("us", "UTC")), ("value", target)])
        batches = [*source.batches(schema, None, NOW)]
        return [value for batch in batches for value in batch["value"].to_pylist()], [*source.remarks()]

    target = pa.list_(pa.string()) if kind == "text[]" else ColumnType.of(kind).arrow
    at = nanoseconds(BEGIN)
    samples = [
        (at + number * 1_300_000_007, sent(value), number % 3, 4 * (number % 3))
        for number, value in enumerate(values)
    ]
    write(tmp_path, "A:B", samples, "%Y", payload, **fields)
    file = tmp_path / "A" / "B:2025.pb"
    lines = file.read_bytes().splitlines(keepends=True)
    assert came("refuse")[0] == values
    for cut in range(1, len(lines[4])):
        file.write_bytes(b"".join([*lines[:4], lines[4][:cut], *lines[5:]]))
        with pytest.raises(IncomingError, match=rf"{file}: line 5 at byte {len(b''.join(lines[:4]))}: "):
            came("refuse")
        left, (count, damage, *_) = came("skip")
        assert (left, count) == ([*values[:3], values[5]], "1 damaged lines: left out"), cut
        assert damage.startswith(f"{file}: line 5 at byte ")


def test_pvs_are_listed_with_their_units(tree: Path) -> None:
    found = {pv.name: fits(pv.header, ColumnType.of("double")) for pv in find(tree).values()}
    assert found == dict(zip(sorted(PVS), [True, True, False, True, True], strict=True))
    listed = ringlog("migrate", "pvs", tree, "--type", "text")
    assert (listed.returncode, listed.stdout) == (0, "SR:Name,mA,\n")


@pytest.mark.long
def test_the_commands_of_a_whole_store(temporary_directory: Path, tmp_path: Path) -> None:
    """PVs become signals, then their samples are imported; rows are imported by the description of a
    column.
    """
    samples = samples_of("SR:I1")
    write(tmp_path / "pb", "SR:I1", samples, "%Y", 6)
    waves = [(moment, [number / 2] * (number % 3), 0, 0) for number, (moment, *_) in enumerate(samples[:50])]
    write(tmp_path / "pb", "SR:Wave", waves, "%Y", 13)
    facility = tmp_path / "facility.toml"
    facility.write_text(
        'name = "store"\ntimezone = "UTC"\n[[table]]\nname = "pvs"\nkind = "samples"\ntype = "double"\n'
        '[[table]]\nname = "waves"\nkind = "samples"\ntype = "double[]"\npoints = 2\n'
        '[[table]]\nname = "ring"\nrows = 10\ncycle = 1\n'
        '[[table.column]]\nname = "current"\nsignal = "SR:I1:ROW"\ntype = "double"\n'
        f'[history]\nonline = "8 weeks"\narchive = "{temporary_directory}/pb_archive"\n'
    )
    columns = tmp_path / "columns.toml"
    columns.write_text('[ring]\ndigits = "round"\ncolumns = { current = "SR:I1" }\n')
    data = temporary_directory / "pb_store"
    words = ("--from", f"pb:{tmp_path / 'pb'}", "--data", data)
    with serving(data, facility=facility) as here:
        for table, kind in (("pvs", "double"), ("waves", "double[]")):
            listed = ringlog("migrate", "pvs", tmp_path / "pb", "--type", kind).stdout
            added = ringlog("signal", "import", table, "-", "--data", data, stdin=listed)
            assert added.stdout.startswith(f"1 signal added to {table}"), added.stderr
            moved = ringlog("migrate", "history", table, *words)
            assert moved.returncode == 0, moved.stderr
        assert f"{COUNT} rows" in ringlog("migrate", "status", "--data", data).stdout
        rows = ringlog("migrate", "history", "ring", *words, "--columns", columns)
        assert rows.returncode == 0, rows.stderr
        with psycopg.connect(here.dsn) as connection:
            query = "select count(*), sum({0}) filter (where abs({0}) < 1e300) from log.{1}"
            found = [
                connection.execute(query.format(*names).encode()).fetchone()
                for names in (("value", "pvs"), ("current", "ring"))
            ]
            kept_waves = connection.execute(
                "select value from log.waves order by time, nanoseconds"
            ).fetchall()
    kept = [value for _, value, *_ in samples if abs(value) < 1e300]
    assert found == [(COUNT, pytest.approx(sum(kept)))] * 2
    assert kept_waves == [(points,) for _, points, *_ in waves]
