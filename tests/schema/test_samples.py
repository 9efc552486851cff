"""Tables of samples: the facility file, signals that come and go, put_<table>, reading in SQL, merging."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors

from ringlog.schema import rights
from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import (
    Column,
    Facility,
    Retention,
    SamplePolicy,
    SampleSignal,
    SampleTable,
    Table,
)
from ringlog.schema.facility_file import FacilityError, load_facility
from ringlog.schema.install import InstallRefused, difference, install
from ringlog.schema.partitions import maintain
from waiting import PATIENCE

from .conftest import Connect, at, rows

T0 = at("2026-03-02 12:00:00")
NS0 = 1_772_452_800_000_000_000
"""T0 in nanoseconds since 1970, as `date +%s%N` has it"""
SIGNALS = (SampleSignal("gauge:1", "mbar", "first gauge", (0.0, 1.0)), SampleSignal("gauge:2"))


def vacuum(kind: str = "double", signals: tuple[SampleSignal, ...] = SIGNALS, **table: Any) -> Facility:
    if ColumnType.of(kind).is_array:
        table.setdefault("points", 4)
    tables = (SampleTable("vac", ColumnType.of(kind), signals=signals, **table),)
    return Facility("test", "UTC", (), sample_tables=tables)


class Vacuum:
    """A database with a table of samples, `vac`, and a connection to it."""

    def __init__(self, engine: sa.Engine, connect: Connect) -> None:
        self.engine = engine
        self.connect = connect
        self.connection = connect()
        self.install()

    def install(self, facility: Facility | None = None) -> None:
        install(self.engine, facility or vacuum())

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return rows(self.connection, statement, *values)

    def value(self, statement: str, *values: object) -> Any:
        ((value,),) = self.rows(statement, *values)
        return value

    def put(self, signal: str, time: object, value: object, *alarm: int) -> Any:
        of_alarm = "".join(f", {each}::smallint" for each in alarm)
        return self.value(f"select ringlog.put_vac(%s, %s::timestamptz, %s{of_alarm})", signal, time, value)

    def batch(
        self,
        signals: list[int],
        times: list[int],
        samples: list[Any],
        severities: list[int] | None = None,
        epoch: int | None = None,
    ) -> Any:
        return self.value(
            "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s, %s::smallint[], null, %s)",
            signals,
            times,
            samples,
            severities,
            epoch,
        )

    def number(self, signal: str) -> int:
        return int(self.value("select number from ringlog.sample_signal where signal = %s", signal))

    def samples(self, signal: str = "gauge:1") -> list[tuple[int, Any]]:
        """Nanoseconds after T0, and value."""
        found = self.rows(
            'select "time", nanoseconds, value from ringlog.get_vac(%s)',
            signal,
        )
        return [
            ((time - T0) // timedelta(microseconds=1) * 1000 + nanos, value) for time, nanos, value in found
        ]

    def merge(self) -> list[int]:
        """Merges all; the signals merged in each hour."""
        merged = []
        while (n := self.value("select ringlog.merge_samples('vac')")) is not None:
            merged.append(n)
        return merged


@pytest.fixture
def vac(engine: sa.Engine, connect: Connect) -> Vacuum:
    return Vacuum(engine, connect)


def loaded(folder: Path, text: str) -> Facility:
    file = folder / "facility.toml"
    file.write_text(text)
    return load_facility(file)


TABLE = '[[table]]\nname = "vac"\nkind = "samples"\ntype = "double"\n'
POLICY = TABLE + '[[policy]]\nname = "p"\n'


def test_a_facility_file_has_tables_of_samples(tmp_path: Path) -> None:
    facility = loaded(
        tmp_path,
        TABLE
        + 'collect = 5\ndeadband = "ADEL"\nring = 50\nretention = "2 years"\nclock_drift = 60\n'
        + '[[table.signal]]\nname = "gauge:{n}"\ncount = 2\nunit = "mbar"\nlimits = [0, 1]\n'
        + '[[table.signal]]\nname = "pump"\nheld = true\naddress = "P"\ndeadband = 0.5\npolicy = "slow"\n'
        + '[[policy]]\nname = "motors"\naddress = "M:*"\nrecord_type = "motor"\nrate = 2\n'
        + '[[policy]]\nname = "slow"\nrecord_type = ["ai", "ao"]\nmethod = "scan"\nperiod = 10\n',
    )
    (table,) = facility.sample_tables
    assert facility.tables == ()
    assert (table.ring, str(table.retention), table.clock_drift) == (50, "2 years", timedelta(minutes=1))
    assert [signal.name for signal in table.signals] == ["gauge:1", "gauge:2", "pump"]
    assert (table.collect, table.deadband) == (5.0, "ADEL")
    assert (table.signals[2].address, table.signals[2].deadband) == ("P", "0.5")
    assert table.signals[2].policy == "slow"
    assert facility.policies == (
        SamplePolicy("motors", None, "M:*", ("motor",), 2.0),
        SamplePolicy("slow", 10.0, "*", ("ai", "ao")),
    )
    assert (table.signals[1].unit, table.signals[1].limits, table.signals[2].held) == (
        "mbar",
        (0.0, 1.0),
        True,
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TABLE + "rows = 3000\n", "rows is for tables of rows, and this one has samples"),
        (TABLE + "rings = 1\n", "'rings' is no key of a table of samples: did you mean 'ring'"),
        (TABLE + "log = { nth = 2 }\n", 'log must be "every": a table of samples keeps all'),
        (TABLE + "ring = 0\n", "ring must be a whole number from 1"),
        (TABLE.replace("double", "varchar(9)[]"), "bigint, bit, text, or waveforms of numbers, as double[]"),
        (TABLE.replace("double", "double[]"), "a waveform needs points, the most it may have"),
        (TABLE + "points = 3\n", "points is for waveforms, and this is double"),
        (
            TABLE.replace("double", "int[]") + 'points = 3\nsummaries = ["1 day"]\n',
            "summaries are of numbers, and this table has int[]",
        ),
        (TABLE.replace('"samples"', '"events"'), "kind 'events' is neither rows nor samples"),
        (TABLE + '[[table.signal]]\nname = "a{n}"\n', "name has {n} where a count is given, and only there"),
        (TABLE + '[[table.signal]]\nname = "a"\n[[table.signal]]\nname = "a"\n', "two signals are named a"),
        (TABLE + '[[table.signal]]\nname = "a"\ncycle = 1\n', "'cycle' is no key of a signal"),
        (
            TABLE + 'summaries = ["10 min"]\n',
            'summaries must be a list of some of "1 h", "1 day"; [] is none',
        ),
        (
            TABLE.replace("double", "text") + 'summaries = ["1 day"]\n',
            "summaries are of numbers, and this table has text",
        ),
        (TABLE + 'deadband = "wide"\n', 'a part as "0.5 %", ADEL or MDEL'),
        (
            TABLE.replace("double", "text") + "deadband = 1\n",
            "a deadband is for numbers, and this table has text",
        ),
        (TABLE + TABLE, "two tables are named vac"),
        (
            TABLE + '[[table.signal]]\nname = "a"\npolicy = "b"\n',
            "there is no [[policy]] of name 'b', which signal 'a' has",
        ),
        (POLICY + '[[policy]]\nname = "p"\n', "two policies are named p"),
        (POLICY + 'method = "poll"\n', "method 'poll' is neither monitor nor scan"),
        (POLICY + 'method = "scan"\n', "scan needs it, monitor has none"),
        (POLICY + "period = 1\n", "scan needs it, monitor has none"),
        (POLICY + 'retention = "1 year"\n', "retention is of a whole table"),
        (POLICY + "record_type = []\n", "record_type must be one of EPICS"),
        (POLICY + "rate = 0\n", "rate must be a number of events a second, above 0"),
        (POLICY + "rates = 1\n", "'rates' is no key of a policy: did you mean 'rate'?"),
        (
            TABLE
            + '[[table]]\nname = "mag"\nrows = 5\ncycle = 1\n[[table.column]]\nname = "a"\ntype = "real"\n'
            'signal = "x"\n' + TABLE.replace("vac", "more") + '[[table.signal]]\nname = "x"\n',
            "table more: signal 'x' is the one of mag.a already",
        ),
    ],
)
def test_wrong_entries_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(FacilityError) as error:
        loaded(tmp_path, text)
    assert problem in str(error.value)


def test_a_sample_is_read_back(vac: Vacuum) -> None:
    assert vac.put("gauge:1", T0, 0.5, 2, 4) == 0
    assert vac.rows('select signal, "time", value, severity, status from log.vac') == [
        ("gauge:1", T0, 0.5, 2, 4)
    ]
    assert vac.rows("select * from ringlog.get_vac('gauge:1')") == [(T0, 0, 0.5, 2, 4)]
    assert vac.rows("select * from ringlog.get_vac_at()") == [("gauge:1", T0, 0, 0.5, 2, 4)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", float("nan")),
        ("double", None),
        ("real", 0.1),
        ("int", -7),
        ("smallint", 3),
        ("bigint", 2**62),
        ("bit", True),
        ("text", "weiß, 'x'"),
        ("double[]", [0.5, float("nan"), -1.0]),
        ("real[]", []),
        ("int[]", None),
        ("bit[]", [True, False]),
    ],
)
def test_values_of_each_type(engine: sa.Engine, connect: Connect, kind: str, value: object) -> None:
    install(engine, vacuum(kind))
    connection = connect()
    for _ in range(2):
        rows(connection, f"select ringlog.put_vac('gauge:1', %s, %s::{ColumnType.of(kind).sql})", T0, value)
    ((stored,),) = rows(connection, "select value::text from log.vac")
    ((wanted,),) = rows(connection, f"select (%s::{ColumnType.of(kind).sql})::text", value)
    assert stored == wanted


def test_many_samples_in_one_call_are_stored_once(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    call = ([one, two, one], [NS0 + 7, NS0 + 1, NS0 + 2], [1.0, 2.0, 3.0], [0, 1, 0])
    for _ in range(3):
        assert vac.batch(*call) == 0
    assert vac.samples("gauge:1") == [(2, 3.0), (7, 1.0)]
    assert vac.samples("gauge:2") == [(1, 2.0)]
    assert vac.value("select count(*) from weeks.vac") == 2
    # one that has some of these and another
    assert vac.batch([one, one, two], [NS0 + 2, NS0 + 5, NS0 + 1], [3.0, 4.0, 2.0], [0, 0, 1]) == 0
    assert vac.samples("gauge:1") == [(2, 3.0), (5, 4.0), (7, 1.0)]


def test_another_sample_of_the_same_time_is_refused_and_nothing_is_stored(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    vac.batch([one], [NS0], [1.0])
    words = "put_vac_batch: the log has another sample of signal 'gauge:1' at 2026-03-02 12:00:00"
    for other in (
        ([two, one], [NS0, NS0], [2.0, 1.5], None),
        ([two, one], [NS0, NS0], [2.0, 1.0], [0, 1]),
        ([two, one, one], [NS0, NS0 + 9, NS0 + 9], [2.0, 1.0, 2.0], None),
    ):
        with pytest.raises(errors.UniqueViolation, match=words):
            vac.batch(*other)
    assert vac.samples("gauge:2") == []
    assert vac.samples("gauge:1") == [(0, 1.0)]


@pytest.mark.parametrize(
    ("signals", "times", "values", "error"),
    [
        ([1], [NS0, NS0], [1.0], errors.ArraySubscriptError),
        ([None], [NS0], [1.0], errors.NotNullViolation),
        ([1], [None], [1.0], errors.NotNullViolation),
        ([10**9], [NS0], [1.0], errors.UndefinedObject),
        ([1], [-1], [1.0], errors.DatetimeFieldOverflow),
    ],
)
def test_wrong_calls_are_errors(
    vac: Vacuum, signals: list[Any], times: list[Any], values: list[float], error: type[Exception]
) -> None:
    signals = [vac.number("gauge:1") if each == 1 else each for each in signals]
    with pytest.raises(error):
        vac.batch(signals, times, values)
    for wrong in (None, "infinity", "1900-01-01", "3000-01-01"):
        with pytest.raises((errors.NotNullViolation, errors.DatetimeFieldOverflow)):
            vac.put("gauge:1", wrong, 1.0)
    with pytest.raises(errors.UndefinedObject, match="table vac has no signal 'none'"):
        vac.put("none", T0, 1.0)
    assert vac.value("select count(*) from weeks.vac") == 0


def test_only_a_sample_of_a_time_ahead_is_dropped_and_named(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    ahead = int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1e9)
    notices: list[str] = []
    vac.connection.add_notice_handler(lambda said: notices.append(said.message_primary or ""))
    vac.batch([one, two, one], [NS0, ahead, ahead], [1.0, 2.0, 3.0])
    assert vac.value("select count(*) from log.vac") == 1
    assert vac.rows("select kind, rows from ringlog.event") == [("clock", 2)]
    assert "put_vac_batch: 2 samples are not stored, as one of signal 'gauge:1'" in notices[0]


def test_signals_come_and_go_while_it_runs(vac: Vacuum) -> None:
    vac.rows("select ringlog.add_signal('vac', 'gauge:9', 'mbar', 'the ninth')")
    vac.put("gauge:9", T0, 9.0)
    assert vac.rows("select signal, table_name, type, unit, description from ringlog.find_signals('%9')") == [
        ("gauge:9", "vac", "double", "mbar", "the ninth")
    ]
    vac.rows("select ringlog.pause_signal('gauge:9')")
    vac.put("gauge:9", T0 + timedelta(seconds=1), 9.5)
    assert vac.samples("gauge:9") == [(0, 9.0)]
    assert vac.rows("select kind, rows from ringlog.event") == [("paused", 1)]
    vac.rows("select ringlog.resume_signal('gauge:9')")
    vac.rows("select ringlog.rename_signal('gauge:9', 'gauge:nine')")
    # by both names
    vac.put("gauge:9", T0 + timedelta(seconds=2), 9.7)
    vac.put("gauge:nine", T0 + timedelta(seconds=3), 9.8)
    values = [9.0, 9.7, 9.8]
    for name in ("gauge:9", "gauge:nine"):
        assert [value for _, value in vac.samples(name)] == values
        assert vac.rows("select value from ringlog.get_signal(%s)", name) == [(value,) for value in values]
        assert vac.rows("select value from ringlog.get_latest(%s)", name) == [(9.8,)]
    vac.rows("select ringlog.retire_signal('gauge:nine')")
    with pytest.raises(errors.UndefinedObject):
        vac.put("gauge:nine", T0 + timedelta(seconds=4), 10.0)
    assert [value for _, value in vac.samples("gauge:nine")] == values
    assert vac.rows("select value from ringlog.get_signal('gauge:nine')") == [(value,) for value in values]
    number = vac.number("gauge:nine")
    assert vac.value("select ringlog.add_signal('vac', 'gauge:nine')") == number
    vac.put("gauge:nine", T0 + timedelta(seconds=4), 10.0)
    assert vac.rows(
        "select change, login from ringlog.signal_change where signal like '%9' or signal like '%nine'"
    ) == [
        (change, vac.connection.info.user) for change in ("add", "pause", "resume", "rename", "retire", "add")
    ]
    assert vac.rows("select state, change from ringlog.list_signals('gauge:nine')") == [("active", "add")]
    # an installation of the same file leaves it alone
    assert not install(vac.engine, vacuum())
    assert vac.samples("gauge:nine")[-1] == (4 * 10**9, 10.0)


def test_a_signal_is_changed_and_what_it_was_is_kept(vac: Vacuum) -> None:
    number = vac.value("select ringlog.add_signal('vac', 'gauge:7', 'mbar')")
    change = "select ringlog.change_signal('gauge:7', %s)"
    wanted = {
        "unit": "Pa",
        "description": "the seventh",
        "limits": [0, 0.5],
        "alarm_limits": [-1, 2],
        "held": True,
        "address": "G7",
        "deadband": "0.5 %",
        "policy": "slow",
    }
    for _ in range(2):  # the second changes nothing
        assert vac.value(change, json.dumps(wanted)) == 0
    described = (
        "select unit, description, limit_low, limit_high, alarm_low, alarm_high, held from ringlog.signal"
    )
    times = "select valid_from, valid_to from ringlog.signal"
    of_it = f" where signal = 'gauge:7' and column_name = '{number}' order by valid_from"
    assert vac.rows(described + of_it) == [
        ("mbar", "", None, None, None, None, False),
        ("Pa", "the seventh", 0.0, 0.5, -1.0, 2.0, True),
    ]
    (_, until), (since, still) = vac.rows(times + of_it)
    assert (until, still) == (since, None)
    source = "select address, deadband from ringlog.sample_signal where number = %s"
    assert vac.rows(source, number) == [("G7", "0.5 %")]
    vac.value(change, json.dumps(dict.fromkeys(wanted)))
    assert vac.rows(described + of_it)[-1] == ("", "", None, None, None, None, False)
    assert vac.rows(source, number) == [("", "")]
    logged = vac.rows(
        "select change, login, detail from ringlog.signal_change where signal = 'gauge:7' order by number"
    )
    assert [(what, who) for what, who, _ in logged] == [
        (what, vac.connection.info.user) for what in ("add", "change", "change")
    ]
    assert json.loads(logged[1][2]) == wanted
    vac.put("gauge:7", T0, 0.25)
    assert vac.samples("gauge:7") == [(0, 0.25)]


@pytest.mark.parametrize(
    ("signal", "changes", "problem"),
    [
        ("gauge:7", '{"units": "Pa"}', r'units \("Pa"\) is no change'),
        ("gauge:7", '{"unit": 5}', r"unit \(5\) is no change"),
        ("gauge:7", '{"limits": [1]}', "is no change"),
        ("gauge:7", '{"limits": [1, "2"]}', "is no change"),
        ("gauge:7", '{"limits": [2, 1]}', "limits are low and high"),
        ("gauge:7", '{"limits": [0, 5], "alarm_limits": [1, 9]}', "alarm_limits are around them"),
        ("gauge:7", '{"held": "yes"}', "is no change"),
        ("gauge:7", '{"states": {"one": "on"}}', "is no change"),
        (
            "gauge:7",
            '{"states": {"1": "on"}}',
            "states are names of whole numbers, and signal 'gauge:7' is double",
        ),
        ("gauge:7", '{"deadband": "wide"}', "a deadband is a number"),
        ("gauge:7", '["unit"]', "the changes are a JSON object"),
        ("gauge:1", '{"unit": "Pa"}', "is in the facility file: change it there"),
        ("gauge:none", '{"unit": "Pa"}', "no table of samples has a signal"),
    ],
)
def test_wrong_changes_change_nothing(vac: Vacuum, signal: str, changes: str, problem: str) -> None:
    vac.rows("select ringlog.add_signal('vac', 'gauge:7', 'mbar')")
    before = vac.rows("select * from ringlog.signal order by signal, valid_from")
    with pytest.raises(psycopg.Error, match=problem):
        vac.value("select ringlog.change_signal(%s, %s)", signal, changes)
    assert vac.rows("select * from ringlog.signal order by signal, valid_from") == before


def test_a_value_has_the_label_of_its_time(engine: sa.Engine, connect: Connect) -> None:
    install(engine, vacuum("smallint"))
    connection = connect()
    connection.execute("select ringlog.add_signal('vac', 'valve')")
    for states in ({"0": "closed", "1": "open"}, {"0": "shut", "1": "open"}, None):
        connection.execute("select ringlog.change_signal('valve', %s)", [json.dumps({"states": states})])
    begins = rows(connection, "select valid_from from ringlog.signal where signal = 'valve' order by 1")
    described = "select states from ringlog.describe_signal('valve', %s)"
    names = [
        rows(connection, described, at) for at in (T0, *(begin for (begin,) in begins), datetime.now(UTC))
    ]
    assert [json.loads(text or "{}").get("0") for ((text,),) in names] == [
        None,
        None,
        "closed",
        "shut",
        None,
        None,
    ]
    assert rows(connection, "select * from ringlog.describe_signal('none')") == []


def test_a_writer_asks_what_to_take_and_tells_how_it_goes(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    vac.batch([one, one], [NS0 + 7, NS0 + 9], [1.0, 2.0], [0, 2])
    wanted = "select number, address, deadband, newest from ringlog.written_signals('vac', %s::bigint)"
    assert vac.rows(wanted, None) == [(one, "gauge:1", "", NS0 + 9), (two, "gauge:2", "", None)]
    version = vac.value("select max(version) from ringlog.written_signals('vac')")
    assert vac.rows(wanted, version) == []
    added = "select ringlog.add_signal('vac', 'gauge:3', address => 'G3', deadband => '0.5 %')"
    three = vac.value(added)
    vac.rows("select ringlog.rename_signal('gauge:2', 'second')")
    vac.rows("select ringlog.pause_signal('gauge:1')")
    assert vac.rows(wanted, version) == [(two, "gauge:2", "", None), (three, "G3", "0.5 %", None)]
    # those of signals that are not written any more are dropped, and no others
    vac.rows("select ringlog.retire_signal('gauge:3')")
    with pytest.raises(errors.UndefinedObject):
        vac.batch([one, two, three], [NS0 + 20] * 3, [1.0, 2.0, 3.0])
    epoch = vac.value("select epoch from ringlog.claim_writer('vac', 'spool', 'me')")
    vac.batch([one, two, three], [NS0 + 20] * 3, [1.0, 2.0, 3.0], epoch=epoch)
    vac.rows("select ringlog.release_claim('vac', 'spool', %s)", epoch)
    assert vac.samples("second") == [(20, 2.0)]
    assert vac.rows("select kind, rows from ringlog.event") == [("paused", 2)]

    state = {"number": two, "connected": True, "since": "2026-03-02T12:00Z", "trouble": "ahead", "dropped": 3}
    told = json.dumps([state | {"policy": "slow"}])
    for _ in range(2):
        assert vac.value("select ringlog.report_signals('vac', %s)", told) == 0
    states = "select signal, connected, value, severity, dropped, silent from ringlog.signal_states()"
    *others, (name, *second, silent) = sorted(vac.rows(states))
    assert others == [("gauge:1", None, "2", 2, 0, "paused"), ("gauge:3", None, None, None, 0, "retired")]
    assert vac.rows("select policy from ringlog.list_signals('second')") == [("slow",)]
    assert (name, second, silent[:24]) == ("second", [True, "2", 0, 6], "its writer has ended at ")
    vac.rows("select ringlog.claim_writer('vac', 'spool', 'me')")
    assert vac.rows(f"{states} where signal = 'second'")[0][-1] == "ahead"


def test_what_a_source_tells_is_kept_and_what_is_set_here_wins(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")

    def tell(number: int, at: str, **told: Any) -> None:
        state = {"number": number, "connected": True, "since": at, "trouble": None, "dropped": 0}
        states = json.dumps([state | {"told": told, "told_at": at}])
        for _ in range(2):  # the second time changes nothing
            assert vac.value("select ringlog.report_signals('vac', %s)", states) == 0

    def now(signal: str) -> tuple[Any, ...]:
        fields = "unit, description, limit_low, limit_high, alarm_high, decimals"
        ((row),) = vac.rows(f"select {fields} from ringlog.describe_signal(%s)", signal)
        return row

    def changes() -> list[tuple[Any, ...]]:
        return vac.rows("select signal, change, detail from ringlog.signal_change where change <> 'add'")

    began = vac.value("select valid_from from ringlog.signal where signal = 'gauge:2'")
    tell(two, "2030-01-01T00:00Z", unit="A", limit_low=None, limit_high=5, alarm_high=9, decimals=3)
    tell(two, "2030-01-01T00:00Z", description="told later")
    # telling for the first time completes the description
    assert vac.rows("select valid_from, valid_to from ringlog.signal where signal = 'gauge:2'") == [
        (began, None)
    ]
    assert now("gauge:2") == ("A", "told later", None, 5.0, 9.0, 3)
    assert changes() == []
    # the file's settings win, and the source tells the others
    tell(one, "2030-01-01T00:00Z", unit="Pa", description="", limit_low=-9, limit_high=9, alarm_high=12)
    assert now("gauge:1") == ("mbar", "first gauge", 0.0, 1.0, 12.0, None)
    # another unit from a time on, which is not ahead
    (before,) = vac.rows("select clock_timestamp()")
    tell(two, before[0].isoformat(), unit="mA")
    assert now("gauge:2")[:2] == ("mA", "told later")
    assert changes() == [("gauge:2", "source", '{"unit": "mA"}')]
    described = "select unit from ringlog.describe_signal('gauge:2', %s)"
    assert vac.value(described, before[0] - timedelta(microseconds=1)) == "A"
    assert vac.value(described, before[0]) == "mA"
    tell(two, "2100-01-01T00:00Z", unit="uA")
    assert (
        vac.value("select unit from ringlog.describe_signal('gauge:2')")
        == vac.value("select unit from ringlog.find_signals('gauge:2')")
        == "uA"
    )

    for wrong in (
        {"table_name": "other"},
        {"unit": None},
        {"limit_low": "0"},
        {"states": "on"},
        {"states": '{"on": "1"}'},
        {"states": '{"1": 1}'},
    ):
        with pytest.raises((errors.InvalidParameterValue, errors.InvalidTextRepresentation)):
            tell(two, "2030-01-01T00:00Z", **wrong)
    assert now("gauge:2")[:2] == ("uA", "told later")

    # an archivist's settings win, until they are removed
    three = vac.value("select ringlog.add_signal('vac', 'gauge:3', 'bar')")
    tell(three, "2030-01-01T00:00Z", unit="Torr", limit_high=7)
    assert now("gauge:3")[:4] == ("bar", "", None, 7.0)
    change = "select ringlog.change_signal('gauge:3', %s)"
    vac.rows(change, json.dumps({"limits": [0, 1], "unit": None}))
    tell(three, "2030-01-01T00:00Z", limit_high=8)
    assert now("gauge:3")[:4] == ("Torr", "", 0.0, 1.0)
    vac.rows(change, json.dumps({"limits": None}))
    assert now("gauge:3")[:4] == ("Torr", "", None, 8.0)
    # a signal that is taken up again has its source's properties
    vac.rows("select ringlog.retire_signal('gauge:3')")
    vac.rows("select ringlog.add_signal('vac', 'gauge:3', description => 'again')")
    assert now("gauge:3")[:4] == ("Torr", "again", None, 8.0)
    # another file changes its own settings
    assert not install(vac.engine, vacuum())
    report = str(install(vac.engine, vacuum(signals=(replace(SIGNALS[0], unit=""), SIGNALS[1]))))
    assert "signal gauge:1: unit mbar → Pa" in report
    assert now("gauge:1")[:4] == ("Pa", "first gauge", 0.0, 1.0)


def test_packed_arrays_say_which_values_are_no_reading(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    put = "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s, nulls => %s::integer[])"
    for _ in range(2):
        vac.rows(put, [one, one], [NS0, NS0 + 1], [1.0, 0.0], [2])
    assert vac.samples() == [(0, 1.0), (1, None)]
    with pytest.raises(errors.ArraySubscriptError, match="nulls has places of samples, not 3"):
        vac.rows(put, [one, one], [NS0, NS0 + 1], [1.0, 0.0], [3])


def test_another_address_in_the_file_reaches_the_writer(vac: Vacuum) -> None:
    version = vac.value("select max(version) from ringlog.written_signals('vac')")
    changed = (replace(SIGNALS[0], address="G:1", deadband="0.1", policy="slow"), SIGNALS[1])
    assert "gauge:1: another address, deadband or policy" in str(install(vac.engine, vacuum(signals=changed)))
    assert ("G:1", "0.1", "slow") in vac.rows(
        "select address, deadband, policy from ringlog.written_signals('vac', %s)", version
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("add_signal('vac', 'gauge:1')", errors.DuplicateObject),
        ("add_signal('none', 'x')", errors.UndefinedObject),
        ("add_signal('vac', ' x')", errors.InvalidParameterValue),
        ("add_signal('vac', 'x', '', '', 2, 1)", errors.InvalidParameterValue),
        ("add_signal('vac', 'x', deadband => 'wide')", errors.InvalidParameterValue),
        ("rename_signal('gauge:1', 'gauge:2')", errors.DuplicateObject),
        ("rename_signal('x', 'y')", errors.UndefinedObject),
        ("pause_signal('x')", errors.UndefinedObject),
        ("retire_signal('x')", errors.UndefinedObject),
    ],
)
def test_wrong_changes_of_signals_are_errors(vac: Vacuum, call: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        vac.rows(f"select ringlog.{call}")


def test_the_file_says_which_signals_it_lists(vac: Vacuum) -> None:
    vac.put("gauge:2", T0, 2.0)
    vac.rows("select ringlog.add_signal('vac', 'mine')")
    changed = (SampleSignal("gauge:1", "Pa", "first gauge", (0.0, 1.0)), SampleSignal("gauge:3"))
    report = install(vac.engine, vacuum(signals=changed, ring=5))
    assert "unit mbar → Pa" in str(report)
    assert "gauge:2: ends" in str(report)
    assert "ring 1000 → 5" in str(report)
    assert vac.rows("select signal, unit from ringlog.find_signals()") == [
        ("gauge:1", "Pa"),
        ("gauge:3", ""),
        ("mine", ""),
    ]
    assert vac.rows("select value from ringlog.get_signal('gauge:2')") == [(2.0,)]
    vac.install()
    assert [name for (name,) in vac.rows("select signal from ringlog.find_signals()")] == [
        "gauge:1",
        "gauge:2",
        "mine",
    ]


def test_conflicts_with_the_database_are_refused(vac: Vacuum) -> None:
    with pytest.raises(InstallRefused, match="samples are double in the database and int in the file"):
        difference(vac.engine, vacuum("int"))
    with pytest.raises(InstallRefused, match="table vac: is not in the facility file any more") as refused:
        difference(vac.engine, Facility("test", "UTC", ()))
    vac.put("gauge:1", T0, 1.0)
    vac.connection.execute(refused.value.obstacles[0].sql.encode())
    install(vac.engine, Facility("test", "UTC", ()))
    assert vac.rows("select signal from ringlog.find_signals()") == []
    vac.install()
    assert vac.samples() == []


def test_a_name_is_that_of_one_signal(vac: Vacuum) -> None:
    other = SampleTable("more", ColumnType.of("int"), signals=(SampleSignal("gauge:1"),))
    with pytest.raises(InstallRefused, match="table more: signal 'gauge:1' is one of table vac"):
        difference(vac.engine, replace(vacuum(), sample_tables=(*vacuum(signals=()).sample_tables, other)))
    mag = Table("mag", 5, 1.0, (Column("current", "gauge:1", ColumnType.of("real")),))
    with pytest.raises(InstallRefused, match="table mag: signal 'gauge:1' is one of table vac"):
        difference(vac.engine, replace(vacuum(signals=()), tables=(mag,)))


def test_the_ring_shows_the_last_samples_of_each_signal(vac: Vacuum) -> None:
    vac.install(vacuum(ring=3))
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    vac.batch([one] * 5, [NS0 + each for each in range(5)], [float(each) for each in range(5)])
    vac.batch([one, two], [NS0 + 10, NS0 + 10], [10.0, 20.0])
    shown = vac.rows("select signal, value from online.vac order by signal, nanoseconds")
    assert shown == [("gauge:1", 3.0), ("gauge:1", 4.0), ("gauge:1", 10.0), ("gauge:2", 20.0)]


def test_samples_of_any_order_are_read_in_order_of_time_and_as_of_a_time(vac: Vacuum) -> None:
    """Compared with a dictionary: calls of any samples, before and after merging."""
    chance = random.Random(53)
    numbers = {vac.number(name): name for name in ("gauge:1", "gauge:2")}
    known: dict[tuple[int, int], float] = {}
    for call in range(60):
        sent = [
            (chance.choice([*numbers]), NS0 + chance.randrange(0, 4 * 3600) * 10**9 + chance.randrange(3))
            for _ in range(chance.randrange(1, 30))
        ]
        for key in sent:
            known.setdefault(key, chance.random())
        vac.batch([key[0] for key in sent], [key[1] for key in sent], [known[key] for key in sent])
        if call == 40:
            assert sum(vac.merge()) == 8
    for round_ in range(2):
        for number, name in numbers.items():
            own = sorted((time - NS0, value) for (of, time), value in known.items() if of == number)
            assert vac.samples(name) == own
            begin, end = 5000, 9000
            part = [value for time, value in own if begin * 10**9 <= time < end * 10**9]
            bounds = (T0 + timedelta(seconds=begin), T0 + timedelta(seconds=end))
            assert [
                value
                for (value,) in vac.rows("select value from ringlog.get_signal(%s, %s, %s)", name, *bounds)
            ] == part
            assert [
                value
                for (value,) in vac.rows("select value from ringlog.get_signal(%s, %s, %s, 3)", name, *bounds)
            ] == part[:3]
        for second in range(0, 4 * 3600, 700):
            newest = {
                name: max(
                    (time, value)
                    for (of, time), value in known.items()
                    if of == number and (time - NS0) // 1000 <= second * 10**6
                )[1]
                for number, name in numbers.items()
                if any(of == number and (time - NS0) // 1000 <= second * 10**6 for of, time in known)
            }
            found = vac.rows(
                "select signal, value from ringlog.get_vac_at(%s)", T0 + timedelta(seconds=second)
            )
            assert dict(found) == newest
        if round_ == 0:
            # the hours with late samples again
            assert vac.merge()
            assert vac.value("select count(*) from weeks.vac") == 8
            assert vac.merge() == []


def test_a_repeat_after_merging_is_stored_once(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    for each in range(5):
        vac.batch([one], [NS0 + each * 10**9], [float(each)])
    assert vac.merge() == [1]
    for each in range(5):
        vac.batch([one], [NS0 + each * 10**9], [float(each)])
    assert vac.value("select count(*) from weeks.vac") == 1
    with pytest.raises(errors.UniqueViolation):
        vac.batch([one], [NS0 + 10**9], [7.0])


def test_a_writer_that_lost_its_claim_stores_nothing(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    claim = "select epoch from ringlog.claim_writer('vac', %s, 'me', %s)"
    epoch = vac.value(claim, "spool 1", False)
    vac.batch([one], [NS0], [1.0], None, epoch)
    with pytest.raises(psycopg.DatabaseError, match="table vac is written by me"):
        vac.value(claim, "spool 2", False)
    later = vac.value(claim, "spool 2", True)
    with pytest.raises(psycopg.DatabaseError, match="another writer has taken the table over"):
        vac.batch([one], [NS0 + 1], [2.0], None, epoch)
    vac.batch([one], [NS0 + 1], [2.0], None, later)
    assert vac.samples() == [(0, 1.0), (1, 2.0)]


def test_housekeeping_moves_samples_to_their_week_and_sets_old_weeks_aside(vac: Vacuum) -> None:
    vac.install(vacuum(clock_drift=timedelta(days=300)))
    later = datetime.now(UTC) + timedelta(weeks=8)
    vac.put("gauge:1", later, 1.0)
    assert vac.value("select count(*) from log.vac_default") == 1
    maintain(vac.engine, later)
    assert vac.value("select count(*) from log.vac_default") == 0
    assert vac.rows("select value from ringlog.get_signal('gauge:1')") == [(1.0,)]
    short = Retention(1, "week")
    vac.install(vacuum(clock_drift=timedelta(days=300), retention=short))
    report = maintain(vac.engine, later + timedelta(weeks=3))
    assert f"vac_{later:%Gw%V}" in report.set_aside
    assert vac.samples() == []


def test_a_shorter_retention_that_removes_weeks_is_refused(vac: Vacuum) -> None:
    before = vac.connection.execute("select date_trunc('week', now()) - interval '21 days'").fetchone()
    vac.put("gauge:1", before[0], 1.0)
    # a week of few samples that is not long over gets a partition
    maintain(vac.engine)
    short = vacuum(retention=Retention(1, "week"))
    with pytest.raises(InstallRefused, match="table vac: its log is kept for ever") as refused:
        difference(vac.engine, short)
    vac.connection.execute(refused.value.obstacles[0].sql.encode())
    vac.install(short)
    assert vac.samples() != []
    assert maintain(vac.engine).set_aside
    assert vac.samples() == []


def test_who_may_do_what(vac: Vacuum, connect: Connect) -> None:
    vac.put("gauge:1", T0, 1.0)
    allowed = {
        "select ringlog.put_vac('gauge:1', '2026-03-02 12:00', 1)": "daq_writer",
        "select * from log.vac": "daq_reader",
        "select * from online.vac": "daq_reader",
        "select * from ringlog.get_vac('gauge:1')": "daq_reader",
        "select * from ringlog.get_signal('gauge:1')": "daq_reader",
        "select ringlog.pause_signal('gauge:2')": "signal_archivist",
        "select ringlog.add_signal('vac', 'another')": "signal_archivist",
        "select ringlog.change_signal('gauge:2', '{}')": "signal_archivist",
    }
    for statement, role in allowed.items():
        for each in ("daq_writer", "daq_reader", "signal_archivist"):
            connection = connect()
            connection.execute(f"set role {each}".encode())
            if each == role:
                connection.execute(statement.encode())
            else:
                with pytest.raises(errors.InsufficientPrivilege):
                    connection.execute(statement.encode())
    for role in ("daq_writer", "daq_reader", "signal_archivist"):
        connection = connect()
        connection.execute(f"set role {role}".encode())
        for statement in (
            "insert into ringlog.sample_signal (table_name, signal) values ('vac', 'x')",
            "delete from weeks.vac",
            "delete from ringlog.signal_change",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_statistics_and_trends_are_computed_from_the_samples(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")
    # a minute of samples each second of one, and three of the other
    vac.batch([one] * 60, [NS0 + each * 10**9 for each in range(60)], [float(each) for each in range(60)])
    vac.batch([two] * 3, [NS0 + each * 10**9 for each in (1, 2, 50)], [1.0, None, 5.0])
    begin, end = T0, T0 + timedelta(minutes=1)
    figures = "select n, min, max, mean, nulls from ringlog.get_statistics(%s, %s, %s)"
    assert vac.rows(figures, "gauge:1", begin, end) == [(60, 0.0, 59.0, 29.5, 0)]
    assert vac.rows(figures, "gauge:2", begin, end) == [(2, 1.0, 5.0, 3.0, 1)]
    trend = 'select "time", n, mean from ringlog.get_trend(%s, %s, %s, 2)'
    assert vac.rows(trend, "gauge:1", begin, end) == [
        (T0, 30, 14.5),
        (T0 + timedelta(seconds=30), 30, 44.5),
    ]
    every = "select value from ringlog.get_signal(%s, %s, %s, null, 20)"
    assert vac.rows(every, "gauge:1", begin, end) == [(0.0,), (20.0,), (40.0,)]


def test_two_calls_of_the_same_samples_at_once_are_stored_once(vac: Vacuum) -> None:
    one = vac.number("gauge:1")
    put = "select ringlog.put_vac_batch(array[%s], array[%s::bigint], array[1.0::float8])"
    first, second = vac.connect(), vac.connect()
    first.autocommit = False
    first.execute(put, [one, NS0])
    with ThreadPoolExecutor() as threads:
        # its answer was lost: it is sent again while the first call has not committed
        again = threads.submit(second.execute, put, [one, NS0])
        waiting = "select count(*) from pg_locks where not granted and relation = 'weeks.vac'::regclass"
        deadline = time.monotonic() + PATIENCE
        while not vac.value(waiting):
            assert time.monotonic() < deadline
        first.commit()
        again.result(PATIENCE)
    assert vac.samples() == [(0, 1.0)]


def test_a_login_with_rights_to_this_table_alone(vac: Vacuum, connect: Connect) -> None:
    vac.put("gauge:1", T0, 1.0)
    connection = vac.connection
    connection.execute("create role alone_with_vac login")
    try:
        connection.execute("grant daq_table_writer, daq_table_reader to alone_with_vac")
        both = (rights.TABLE_WRITER, rights.TABLE_READER)
        for role in both:
            rights.hold(connection, "alone_with_vac", role, rights.split(connection, ["vac"]))
        own = connect()
        own.execute("set role alone_with_vac")
        for statement in (
            "select ringlog.put_vac('gauge:1', '2026-03-02 12:00:01+00', 2)",
            "select * from ringlog.last_vac()",
            "select ringlog.claim_writer('vac', 'spool', 'me')",
        ):
            own.execute(statement.encode())
        for read in ("log.vac", "online.vac", "ringlog.get_signal('gauge:1')", "ringlog.get_vac('gauge:1')"):
            assert len(rows(own, f"select * from {read}")) == 2
        assert rows(own, "select value from ringlog.get_latest('gauge:1')") == [(2.0,)]
        assert rows(own, "select value from ringlog.get_vac_at()") == [(2.0,)]
    finally:
        rights.forget(connection, "alone_with_vac")
        connection.execute("drop role alone_with_vac")


class Traces(Vacuum):
    """A database with a table of samples that are waveforms of at most four points."""

    def install(self, facility: Facility | None = None) -> None:
        install(self.engine, facility or vacuum("double[]", ring=2))

    def waves(
        self,
        signals: list[int],
        times: list[int],
        waves: list[list[float] | None],
        severities: list[int] | None = None,
    ) -> None:
        points = [point for wave in waves for point in wave or ()]
        lengths = [None if wave is None else len(wave) for wave in waves]
        self.rows(
            "select ringlog.put_vac_batch(%s::integer[], %s::bigint[], %s::double precision[],"
            " %s::smallint[], lengths => %s::integer[])",
            *(signals, times, points, severities, lengths),
        )


@pytest.fixture
def traces(engine: sa.Engine, connect: Connect) -> Traces:
    return Traces(engine, connect)


def test_waveforms_are_samples(traces: Traces) -> None:
    one, two = traces.number("gauge:1"), traces.number("gauge:2")
    call: list[Any] = [[one, two, one, one], [NS0 + 7, NS0 + 1, NS0 + 2, NS0 + 3_000_000_000]]
    call += [[[1.0, 2.0], [3.0], [], None], [2, 0, 0, 0]]
    for _ in range(2):
        traces.waves(*call)
    assert traces.put("gauge:2", at("2026-03-02 12:00:02"), [4.0, 5.0, 6.0, 7.0], 1, 4) == 0
    assert traces.samples() == [(2, []), (7, [1.0, 2.0]), (3_000_000_000, None)]
    assert traces.samples("gauge:2") == [(1, [3.0]), (2_000_000_000, [4.0, 5.0, 6.0, 7.0])]
    # the ring has two of each signal
    assert traces.rows("select signal, value, severity from online.vac order by signal, time") == [
        ("gauge:1", [1.0, 2.0], 2),
        ("gauge:1", None, 0),
        ("gauge:2", [3.0], 0),
        ("gauge:2", [4.0, 5.0, 6.0, 7.0], 1),
    ]
    assert traces.rows("select value, severity from ringlog.get_vac_at(%s)", at("2026-03-02 12:00:01")) == [
        ([1.0, 2.0], 2),
        ([3.0], 0),
    ]
    assert [row[4] for row in traces.rows("select * from ringlog.signal_states()")] == [None, "4 points"]
    # each is a block, and housekeeping leaves it so
    assert set(traces.merge()) == {0}
    assert traces.samples() == [(2, []), (7, [1.0, 2.0]), (3_000_000_000, None)]


def test_waveforms_of_samples_are_read_as_those_of_rows(traces: Traces) -> None:
    one = traces.number("gauge:1")
    times = [NS0 + second * 10**9 for second in range(5)]
    traces.waves([one] * 5, times, [[1.0, 3.0], [2.0], [5.0], None, None])
    assert traces.rows("select * from ringlog.get_waveform('gauge:1')") == [
        (at("2026-03-02 12:00:02"), [5.0])
    ]
    assert traces.rows("select value from ringlog.get_waveform('gauge:1', %s)", T0) == [([1.0, 3.0],)]
    assert traces.rows("select * from ringlog.get_waveform('gauge:1', %s)", at("2026-03-01 12:00:00")) == []
    assert traces.rows("select value from ringlog.get_waveforms('gauge:1', every_nth => 2)") == [
        ([1.0, 3.0],),
        ([5.0],),
    ]
    assert traces.rows("select * from ringlog.get_waveform_points('gauge:1', %s)", T0) == [(0, 1.0), (1, 3.0)]
    trend = "select n, min, max, mean from ringlog.get_trend('gauge:1.max', %s, %s, 1)"
    assert traces.rows(trend, T0, at("2026-03-02 12:00:05")) == [(3, 2.0, 5.0, pytest.approx(10 / 3))]
    trend = "select n, shortest, longest, nulls from ringlog.get_waveform_trend('gauge:1', %s, %s, 1)"
    assert traces.rows(trend, T0, at("2026-03-02 12:00:05")) == [(3, 1, 2, 2)]
    with pytest.raises(errors.DatatypeMismatch, match="is a waveform"):
        traces.rows("select * from ringlog.get_signal('gauge:1')")
    with pytest.raises(errors.DatatypeMismatch, match="is a waveform"):
        traces.rows("select * from ringlog.get_latest('gauge:1')")


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ("array[1.0, 2.0], lengths => array[3]", errors.ArraySubscriptError, "not those of all points"),
        ("array[1.0, 2.0], lengths => array[2, 0]", errors.ArraySubscriptError, "an element for each sample"),
        ("array[1.0, 2.0]", errors.ArraySubscriptError, "not those of all points"),
        ("array[1.0, null], lengths => array[2]", errors.ArraySubscriptError, "without a NULL among"),
        ("array[[1.0], [2.0]], lengths => array[2]", errors.ArraySubscriptError, "of one dimension"),
        (
            "array[1.0, 2.0, 3.0, 4.0, 5.0], lengths => array[5]",
            errors.StringDataRightTruncation,
            "has 5 points, and the facility file says at most 4",
        ),
    ],
)
def test_wrong_waveforms_are_errors(
    traces: Traces, arguments: str, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        traces.rows(f"select ringlog.put_vac_batch(array[1], array[{NS0}], {arguments})")
    assert traces.value("select count(*) from log.vac") == 0


def test_another_waveform_of_the_same_time_is_refused(traces: Traces) -> None:
    one, two = traces.number("gauge:1"), traces.number("gauge:2")
    traces.waves([one], [NS0], [[1.0, 2.0]])
    for waves in ([[3.0], [1.0]], [[3.0], None]):
        with pytest.raises(errors.UniqueViolation, match="another sample of signal 'gauge:1'"):
            traces.waves([two, one], [NS0, NS0], waves)
    assert traces.samples("gauge:2") == []
    # one that is stored, and another twice in a call
    traces.waves([two, one, two], [NS0 + 9, NS0, NS0 + 9], [[8.0, 9.0], [1.0, 2.0], [8.0, 9.0]])
    assert traces.samples("gauge:2") == [(9, [8.0, 9.0])]
    # of a paused signal they are dropped, and the others are stored
    traces.rows("select ringlog.pause_signal('gauge:1')")
    traces.waves([one, two, one, two], [NS0 + 1, NS0 + 1, NS0 + 2, NS0 + 2], [[9.0], [3.0], None, [4.0, 5.0]])
    assert traces.samples("gauge:2") == [(1, [3.0]), (2, [4.0, 5.0]), (9, [8.0, 9.0])]
    assert traces.samples() == [(0, [1.0, 2.0])]
