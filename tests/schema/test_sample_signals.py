"""Tables of samples in the facility file, and signals that are added and retired."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Facility, SamplePolicy, SampleSignal, SampleTable, Table
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility
from ringlog.schema.installing.install import InstallRefused, difference, install

from .conftest import NS0, SIGNALS, T0, Vacuum, vacuum


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


def test_signals_are_added_and_retired_while_it_runs(vac: Vacuum) -> None:
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


def test_a_signal_is_changed_and_its_history_is_kept(vac: Vacuum) -> None:
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
        ("gauge:7", f'{{"unit": "{"m" * 65}"}}', "a unit one line of up to 64 characters"),
        ("gauge:7", '{"unit": "m\\nm"}', "a unit one line of up to 64 characters"),
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


def test_a_writer_queries_its_signals_and_reports_its_state(vac: Vacuum) -> None:
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


def tell(vac: Vacuum, number: int, at: str, **told: Any) -> None:
    """A source reports these properties of a signal, twice: the second time changes nothing."""
    state = {"number": number, "connected": True, "since": at, "trouble": None, "dropped": 0}
    states = json.dumps([state | {"reported": told, "reported_at": at}])
    for _ in range(2):
        assert vac.value("select ringlog.report_signals('vac', %s)", states) == 0


def described(vac: Vacuum, signal: str) -> tuple[Any, ...]:
    fields = "unit, description, limit_low, limit_high, alarm_high, decimals"
    ((row),) = vac.rows(f"select {fields} from ringlog.describe_signal(%s)", signal)
    return row


def test_properties_of_a_source_are_stored(vac: Vacuum) -> None:
    one, two = vac.number("gauge:1"), vac.number("gauge:2")

    def changes() -> list[tuple[Any, ...]]:
        return vac.rows("select signal, change, detail from ringlog.signal_change where change <> 'add'")

    began = vac.value("select valid_from from ringlog.signal where signal = 'gauge:2'")
    tell(vac, two, "2030-01-01T00:00Z", unit="A", limit_low=None, limit_high=5, alarm_high=9, decimals=3)
    tell(vac, two, "2030-01-01T00:00Z", description="told later")
    # telling for the first time completes the description
    assert vac.rows("select valid_from, valid_to from ringlog.signal where signal = 'gauge:2'") == [
        (began, None)
    ]
    assert described(vac, "gauge:2") == ("A", "told later", None, 5.0, 9.0, 3)
    assert changes() == []
    # the file's settings win, and the source tells the others
    tell(vac, one, "2030-01-01T00:00Z", unit="Pa", description="", limit_low=-9, limit_high=9, alarm_high=12)
    assert described(vac, "gauge:1") == ("mbar", "first gauge", 0.0, 1.0, 12.0, None)
    # another unit from a time on, which is not ahead
    (before,) = vac.rows("select clock_timestamp()")
    tell(vac, two, before[0].isoformat(), unit="mA")
    assert described(vac, "gauge:2")[:2] == ("mA", "told later")
    assert changes() == [("gauge:2", "source", '{"unit": "mA"}')]
    unit_at = "select unit from ringlog.describe_signal('gauge:2', %s)"
    assert vac.value(unit_at, before[0] - timedelta(microseconds=1)) == "A"
    assert vac.value(unit_at, before[0]) == "mA"
    tell(vac, two, "2100-01-01T00:00Z", unit="uA")
    assert (
        vac.value("select unit from ringlog.describe_signal('gauge:2')")
        == vac.value("select unit from ringlog.find_signals('gauge:2')")
        == "uA"
    )

    # what is wrong is named, and everything else is taken
    tell(
        vac,
        two,
        "2030-01-01T00:00Z",
        table_name="other",
        unit=None,
        limit_low="0",
        alarm_low=-7,
        states="on",
        description="told at last",
    )
    for states in ('{"on": "1"}', '{"1": 1}'):
        tell(vac, two, "2030-01-01T00:00Z", states=states)
        told = vac.value("select message from ringlog.event where kind = 'unfit'")
        assert told.startswith("ignored properties from sources: gauge:2: states (")
    assert described(vac, "gauge:2")[:3] == ("uA", "told at last", None)
    assert vac.rows("select alarm_low, states from ringlog.describe_signal('gauge:2')") == [(-7.0, None)]


def test_own_settings_take_precedence_over_those_of_a_source(vac: Vacuum) -> None:
    tell(vac, vac.number("gauge:1"), "2030-01-01T00:00Z", unit="Pa", limit_low=-9, limit_high=9)
    # an archivist's settings win, until they are removed
    three = vac.value("select ringlog.add_signal('vac', 'gauge:3', 'bar')")
    tell(vac, three, "2030-01-01T00:00Z", unit="Torr", limit_high=7)
    assert described(vac, "gauge:3")[:4] == ("bar", "", None, 7.0)
    change = "select ringlog.change_signal('gauge:3', %s)"
    vac.rows(change, json.dumps({"limits": [0, 1], "unit": None}))
    tell(vac, three, "2030-01-01T00:00Z", limit_high=8)
    assert described(vac, "gauge:3")[:4] == ("Torr", "", 0.0, 1.0)
    vac.rows(change, json.dumps({"limits": None}))
    assert described(vac, "gauge:3")[:4] == ("Torr", "", None, 8.0)
    # a signal that is taken up again has its source's properties
    vac.rows("select ringlog.retire_signal('gauge:3')")
    vac.rows("select ringlog.add_signal('vac', 'gauge:3', description => 'again')")
    assert described(vac, "gauge:3")[:4] == ("Torr", "again", None, 8.0)
    # another file changes its own settings
    assert not install(vac.engine, vacuum())
    report = str(install(vac.engine, vacuum(signals=(replace(SIGNALS[0], unit=""), SIGNALS[1]))))
    assert "signal gauge:1: unit mbar → Pa" in report
    assert described(vac, "gauge:1")[:4] == ("Pa", "first gauge", 0.0, 1.0)


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
        ("add_signal('vac', 'x', repeat('m', 65))", errors.InvalidParameterValue),
        ("add_signal('vac', 'x', E'm\\nm')", errors.InvalidParameterValue),
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


def test_a_file_with_a_complete_list_of_signals(vac: Vacuum) -> None:
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
    vac.install(vacuum())
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
    vac.install(vacuum())
    assert vac.samples() == []


def test_a_name_is_that_of_one_signal(vac: Vacuum) -> None:
    other = SampleTable("more", ColumnType.of("int"), signals=(SampleSignal("gauge:1"),))
    with pytest.raises(InstallRefused, match="table more: signal 'gauge:1' is one of table vac"):
        difference(vac.engine, replace(vacuum(), sample_tables=(*vacuum(signals=()).sample_tables, other)))
    mag = Table("mag", 5, 1.0, (Column("current", "gauge:1", ColumnType.of("real")),))
    with pytest.raises(InstallRefused, match="table mag: signal 'gauge:1' is one of table vac"):
        difference(vac.engine, replace(vacuum(signals=()), tables=(mag,)))
