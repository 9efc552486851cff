"""Phoebus's own archive reader, compiled from its source, reads every type of column unchanged.

Run by hand (docs/developer.md). RINGLOG_PHOEBUS and RINGLOG_PBRAWCLIENT are checkouts of
ControlSystemStudio/phoebus and archiver-appliance/epicsarchiverap_pbrawclient.
"""

import json
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.conninfo import make_conninfo

from ringlog.history.archive.archiving import archive
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing.install import install
from ringlog.schema.relations.partitions import maintain
from ringlog.server.processes.web import Web, settings
from servers import free_port

pytestmark = pytest.mark.timeout(600)

HERE = Path(__file__).parent / "phoebus"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies"
READER = "app/trends/archive-reader/src/main"
TYPES = {
    "real": [1.5, -0.1, 3e38, 0.0],
    "double": [0.1, -1e300, 5e-324, 0.0],
    "int": [-(2**31), 2**31 - 1, 10, 13],
    "smallint": [-(2**15), 2**15 - 1, 27, 0],
    "bigint": [-(2**53), 2**53, 10, 0],
    "bit": [False, True, True, False],
    "numeric(12,3)": [-123456789.125, 0.001, 10.0, 0.0],
    "varchar(40)": ['a "quoted"\ttext\n', "é€😀", "", "x\\n"],
    "real[]": [[0.5, -0.25], [1e-3], [10.0, 13.0, 27.0], [0.0]],
    "double[]": [[0.1, 1e300], [math.pi] * 50, [10.0, 13.0], [0.0]],
    "int[]": [[10, 13, 27, -(2**31)], [1], [2**31 - 1], [0]],
    "smallint[]": [[-300, 27], [10, 13], [-(2**15)], [0]],
    "bigint[]": [[2**53, -1], [10, 13], [27], [0]],
    "bit[]": [[True, False], [True] * 9, [False], [True]],
}
NOW = datetime(2026, 2, 4, tzinfo=UTC)
BEGIN = datetime(2025, 12, 20, tzinfo=UTC)
STEP = timedelta(hours=1)
GAP = (datetime(2026, 1, 10, tzinfo=UTC), datetime(2026, 1, 13, tzinfo=UTC))
SEVERITIES = ["NONE", "MINOR", "MAJOR", "INVALID"]
STATUSES = {0: "NO_ALARM", 3: "HIHI", 4: "HIGH", 17: "UDF"}


def column(kind: str) -> str:
    return "a_" + kind.partition("(")[0].replace("[]", "_wave")


@dataclass(frozen=True)
class Row:
    """A row of the log: a value of each type, or none in every tenth, and the alarm of `a_double`."""

    number: int
    nanoseconds: int

    @property
    def time(self) -> datetime:
        """To the microsecond."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.nanoseconds // 1000)

    def value(self, kind: str) -> Any:
        return None if self.number % 10 == 9 else TYPES[kind][self.number % 4]

    @property
    def alarm(self) -> tuple[int, int]:
        return [(0, 0), (1, 4), (2, 3), (0, 0), (0, 0)][self.number % 5]


def known_rows() -> list[Row]:
    """A row per hour with a gap of three days, and some a microsecond or less apart around the end of the
    year.
    """
    times = [int((BEGIN + n * STEP).timestamp()) * 10**9 + n for n in range((NOW - BEGIN) // STEP)]
    outage = [int(moment.timestamp()) * 10**9 for moment in GAP]
    year = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    times += [year - 1, year - 1001, year + 999, year + 1001]
    times = sorted(time for time in times if not outage[0] <= time < outage[1])
    return [Row(number, time) for number, time in enumerate(times)]


ROWS = known_rows()


class Phoebus:
    """The reader, running."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, *parts: str) -> list[list[str]]:
        """Requests the fields of each line of an answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(parts) + "\n")
        self._process.stdin.flush()
        lines = []
        while (line := self._process.stdout.readline()) not in ("\n", ""):
            lines.append(line.removesuffix("\n").split("\t"))
        assert self._process.poll() is None
        return lines

    def values(self, what: str, name: str, *more: str, since: datetime, until: datetime) -> list["Value"]:
        found = self.ask(what, name, instant(since), instant(until), *more)
        assert [line for line in found if line[0] == "failed"] == []
        return [Value(*line) for line in found]


@dataclass(frozen=True)
class Value:
    kind: str
    nanoseconds: str
    severity: str
    status: str
    content: str
    unit: str
    display: str
    warning: str


def instant(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of the reader and of ReadArchive, compiled."""
    sources = [os.environ.get(name) for name in ("RINGLOG_PHOEBUS", "RINGLOG_PBRAWCLIENT")]
    if None in sources:
        pytest.skip("RINGLOG_PHOEBUS and RINGLOG_PBRAWCLIENT are not set")
    phoebus, client = (Path(str(source)).resolve() for source in sources)
    made = tmp_path_factory.mktemp("phoebus")
    run("mvn", "-q", "-B", "-f", HERE / "pom.xml", COPY, f"-DoutputDirectory={made / 'jars'}")
    [protoc] = (made / "jars").glob("protoc-*.exe")
    protoc.chmod(0o755)
    messages = client / "lib/src/main/proto/org.epics"
    (made / "generated").mkdir()
    run(protoc, f"--java_out={made / 'generated'}", "-I", messages, "EPICSEvent.proto")
    folders = [phoebus / READER / "java", *phoebus.glob("core/*/src/main/java")]
    folders += [client / "lib/src/main/java", made / "generated"]
    path = f"{made / 'classes'}:{made / 'jars'}/*"
    options = ("-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", made / "classes", "-cp", path)
    run("javac", *options, "-sourcepath", ":".join(map(str, folders)), HERE / "ReadArchive.java")
    for preferences in (phoebus / READER / "resources").glob("*.properties"):
        shutil.copy(preferences, made / "classes")
    return path


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def phoebus(
    classes: str, prepared_databases: Callable[[], AbstractContextManager[sa.URL]], temporary_directory: Path
) -> Iterator[Phoebus]:
    """The reader, on a server all of whose weeks except the newest are files."""
    with prepared_databases() as url:
        yield from reading(classes, url, temporary_directory / "phoebus")


def reading(classes: str, url: sa.URL, folder: Path) -> Iterator[Phoebus]:
    folder.mkdir()
    conninfo = make_conninfo(user=url.username, dbname=url.database, **dict(url.query))
    engine = sa.create_engine(url)
    (folder / "facility.toml").write_text(facility(folder / "archive"))
    install(engine, load_facility(folder / "facility.toml"))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        fill(connection)
        maintain(engine, NOW)
    assert len([*archive(conninfo, NOW, pauses=0)]) > 3
    engine.dispose()
    served = settings("127.0.0.1", free_port(), conninfo, role="daq_reader")
    with Web(served).running() as web:
        command = ["java", "-cp", classes, "ReadArchive", f"pbraw://{web.address}/retrieval"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield Phoebus(process)
            assert process.stdin is not None
            process.stdin.close()


def facility(folder: Path) -> str:
    text = f"""timezone = "UTC"
[history]
online = "2 weeks"
archive = "{folder}"
[[table]]
name = "every"
rows = 10
cycle = 3600.0
nanoseconds = true
"""
    for kind in TYPES:
        text += f'[[table.column]]\nname = "{column(kind)}"\nsignal = "t/{kind}"\ntype = "{kind}"\n'
        text += "points = 100\n" if kind.endswith("[]") else ""
        text += 'unit = "mA"\nlimits = [-5.0, 5.5]\n' if kind in ("double", "real[]") else ""
    text += '[[table.column]]\nname = "severity"\nsignal = "t/double.SEVR"\ntype = "smallint"\n'
    return text + '[[table.column]]\nname = "status"\nsignal = "t/double.STAT"\ntype = "varchar(20)"\n'


def fill(connection: psycopg.Connection) -> None:
    names = ["seq_no", "time", *map(column, TYPES), "severity", "status", "nanoseconds"]
    texts = ", ".join(["%s"] * len(names))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"insert into log.every ({', '.join(names)}) values ({texts})",
            [
                (
                    row.number % 10 + 1,
                    row.time,
                    *(row.value(kind) for kind in TYPES),
                    row.alarm[0],
                    STATUSES[row.alarm[1]] if row.alarm[1] else None,
                    row.nanoseconds % 1000,
                )
                for row in ROWS
            ],
        )


def undefined(kind: str) -> Any:
    """The value for a missing reading, with an alarm."""
    if kind.startswith("varchar"):
        return ""
    missing = math.nan if KINDS[kind] in ("VFloat", "VDouble", "VDoubleArray") else 0
    return [missing] if kind.endswith("[]") else missing


KINDS = {
    "real": "VFloat",
    "double": "VDouble",
    "int": "VInt",
    # the appliance's messages have 32 bits for both
    "smallint": "VInt",
    "bigint": "VDouble",
    "numeric(12,3)": "VDouble",
    "bit": "VEnum",
    "varchar(40)": "VString",
    "real[]": "VDoubleArray",
    "double[]": "VDoubleArray",
    "bigint[]": "VDoubleArray",
    "int[]": "VIntArray",
    "smallint[]": "VIntArray",
    "bit[]": "VIntArray",
}


def content(value: Value, kind: str) -> Any:
    found = json.loads(value.content.replace("Infinity", '"Infinity"'))
    if value.kind == "VEnum":
        assert found[0] == found[1]
        return found[0]
    return float(np.float32(found)) if kind == "real" else found


def shown(row: Row, kind: str) -> Any:
    """The expected value of the reader, by its repr, because NaN is not equal to itself."""
    value = row.value(kind)
    if value is None:
        return undefined(kind)
    if kind in ("real", "real[]"):
        numbers = np.float32(value).astype(float).tolist()
        return numbers
    return np.asarray(value).astype(int).tolist() if kind.startswith("bit") else value


def alarm(row: Row, kind: str) -> tuple[str, str]:
    severity, status = row.alarm if kind == "double" else (0, 0)
    if row.value(kind) is None:
        severity, status = 3, status or 17
    return SEVERITIES[severity], STATUSES[status]


@pytest.mark.parametrize("first", [0, 9], ids=["a reading", "none"])
@pytest.mark.parametrize("kind", TYPES)
def test_values_equal_the_stored_ones(phoebus: Phoebus, kind: str, first: int) -> None:
    """Over weeks in files and in PostgreSQL, a gap and the end of a year, to the nanosecond. The first value,
    which lies before the interval, is a reading, or none."""
    rows = ROWS[first:]
    found = phoebus.values("raw", f"t/{kind}", since=rows[0].time + STEP / 2, until=NOW)
    assert [int(value.nanoseconds) for value in found] == [row.nanoseconds for row in rows]
    assert {value.kind for value in found} == {KINDS[kind]}
    read = [repr(content(value, kind)) for value in found]
    assert [text.replace(".0", "") for text in read] == [
        repr(shown(row, kind)).replace(".0", "") for row in rows
    ]
    assert [(value.severity, value.status.removesuffix("_ALARM")) for value in found] == [
        (severity, status.removesuffix("_ALARM")) for severity, status in (alarm(row, kind) for row in rows)
    ]
    limited = kind in ("double", "real[]")
    assert {(value.unit, value.display) for value in found} <= {
        ("mA", "[-5.0 - 5.5]") if limited else ("", "[NaN - NaN]")
    }


NUMBERS = ("real", "double", "int", "smallint", "bigint", "numeric(12,3)")


@pytest.mark.parametrize("kind", NUMBERS)
def test_bins_contain_their_samples(phoebus: Phoebus, kind: str) -> None:
    """By the operator `optimized`, and by five others, which the reader requests from servers without it."""
    least = ROWS[0].time
    asked = {"since": least, "until": NOW}
    means = phoebus.values("optimized", f"t/{kind}", "40", **asked)
    assert [(value.nanoseconds, value.content) for value in means] == [
        (value.nanoseconds, value.content) for value in phoebus.values("mean", f"t/{kind}", "40", **asked)
    ]
    for what in ("optimized-statistics", "mean-statistics"):
        found = phoebus.values(what, f"t/{kind}", "40", **asked)
        assert [value.nanoseconds for value in found] == [value.nanoseconds for value in means]
        bins = [[float(figure) for figure in json.loads(as_json(value))] for value in found]
        assert [repr(each[0]) for each in bins] == [repr(float(value.content)) for value in means]
        width = 10**9 * int((NOW - least).total_seconds() / 40)
        for value, (mean, deviation, low, high, count) in zip(found, bins, strict=True):
            begin = int(value.nanoseconds) - width // 2
            inside = [
                np.float32(row.value(kind)) if kind == "real" else row.value(kind)
                for row in ROWS
                if begin <= row.nanoseconds < begin + width and row.value(kind) is not None
            ]
            if not inside:
                continue  # a gap: the value before it
            assert (count, low, high) == (len(inside), min(inside), max(inside))
            numbers = np.array(inside, float)
            # sums of doubles
            assert mean == pytest.approx(numbers.mean(), abs=1e-14 * np.abs(numbers).max())
            if kind != "double":  # its squares are beyond a double
                assert deviation == pytest.approx(numbers.std(ddof=1))


def as_json(value: Value) -> str:
    return value.content.replace("Infinity", "1e999")


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in NUMBERS])
def test_values_without_a_mean_are_thinned(phoebus: Phoebus, kind: str) -> None:
    for what in ("optimized", "mean", "optimized-statistics", "mean-statistics"):
        found = phoebus.values(what, f"t/{kind}", "40", since=ROWS[0].time, until=NOW)
        step = len(ROWS) // 40
        assert [int(value.nanoseconds) for value in found] == [row.nanoseconds for row in ROWS[::step]]
    found = phoebus.values("optimized", f"t/{kind}", "2000", since=ROWS[0].time, until=NOW)
    assert len(found) == len(ROWS)


@pytest.mark.parametrize("kind", TYPES)
def test_the_value_before(phoebus: Phoebus, kind: str) -> None:
    """In a gap the value before it is read, also from files."""
    before = max(row.nanoseconds for row in ROWS if row.time < GAP[0])
    inside = {"since": GAP[0] + STEP, "until": GAP[0] + 2 * STEP}
    assert [int(value.nanoseconds) for value in phoebus.values("raw", f"t/{kind}", **inside)] == [before]


def test_names(phoebus: Phoebus) -> None:
    def names(glob: str) -> list[str]:
        return [line[0] for line in phoebus.ask("names", glob)]

    alarms = ["t/double.SEVR", "t/double.STAT"]
    assert sorted(names("t/*")) == sorted([*(f"t/{kind}" for kind in TYPES), *alarms])
    assert sorted(names("T/DOU*")) == []
    # it searches by a part of the name
    assert sorted(names("t/smallin?")) == ["t/smallint", "t/smallint[]"]
    assert names("none*") == []
    assert "failed" in phoebus.ask("raw", "t/none", instant(BEGIN), instant(NOW))[0]
