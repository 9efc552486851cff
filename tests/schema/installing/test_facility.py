"""Valid and refused facility files."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from case_tables import cases

from ringlog.schema.column_type import ColumnType
from ringlog.schema.facility import Column, Deadband, History, LogPolicy, Node, Retention, Sampling
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility

VALID = """
timezone = "UTC"

[[table]]
name = "sr_mag_ps"
description = "storage ring magnet power supplies"
rows = 3000
cycle = 1.0
log = "every"
retention = "10 years"

[[table.column]]
name = "current_{n}"
count = 200
signal = "sr_mag_ps_b_{n}/current_adc"
type = "real"
unit = "A"
limits = [-500.0, 500.0]
"""

TABLE = """
[[table]]
name = "{name}"
rows = 10
cycle = 1
[[table.column]]
name = "{column}"
type = "real"
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "facility.toml"
    file.write_text(text)
    return file


def refusal(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(FacilityError) as error:
        load_facility(write(folder, text))
    begin = re.escape(str(folder / "facility.toml"))
    assert all(re.match(rf"{begin}(:\d+)?: ", line) for line in str(error.value).splitlines())
    return error.value.problems


def test_states_and_two_levels_of_limits(tmp_path: Path) -> None:
    text = VALID.replace("limits = [-500.0, 500.0]", "limits = [1, 2]\nalarm_limits = [0, 2]")
    mode = (
        '[[table.column]]\nname = "mode"\ntype = "int"\nstates = { 1 = "standby", -1 = "fault", 0 = "off" }\n'
    )
    first, *_, last = load_facility(write(tmp_path, text + mode)).tables[0].columns
    assert (first.limits, first.alarm_limits) == ((1.0, 2.0), (0.0, 2.0))
    assert last.states == ((-1, "fault"), (0, "off"), (1, "standby"))


def test_held_values(tmp_path: Path) -> None:
    column = '[[table.column]]\nname = "setting"\ntype = "double"\nheld = true\n'
    *others, last = load_facility(write(tmp_path, VALID + column)).tables[0].columns
    assert last.held
    assert not any(each.held for each in others)
    text = VALID + column.replace("double", "varchar(9)")
    problem = "held is for single numbers, and this column is varchar(9)"
    assert [one.endswith(problem) for one in refusal(tmp_path, text)] == [True]


def test_example_of_the_design(tmp_path: Path) -> None:
    facility = load_facility(write(tmp_path, VALID))
    assert (facility.name, facility.timezone) == ("facility", "UTC")
    (table,) = facility.tables
    assert (table.name, table.rows, table.cycle) == ("sr_mag_ps", 3000, 1.0)
    assert table.description == "storage ring magnet power supplies"
    assert table.log == LogPolicy()
    assert table.log.every
    assert str(table.retention) == "10 years"
    assert len(table.columns) == 200
    assert table.columns[0] == Column(
        "current_1", "sr_mag_ps_b_1/current_adc", "real", "A", "", (-500.0, 500.0)
    )
    assert table.columns[199].name == "current_200"


def test_only_names_rows_cycle_and_types_are_required(tmp_path: Path) -> None:
    facility = load_facility(write(tmp_path, TABLE.format(name="a", column="b")))
    (table,) = facility.tables
    assert facility.timezone == "UTC"
    assert (table.log, table.retention, table.description) == (LogPolicy(), None, "")
    assert table.columns == (Column("b", "a/b", "real", "", "", None),)


def test_nanoseconds_are_a_separate_column(tmp_path: Path) -> None:
    text = TABLE.format(name="a", column="b").replace("cycle = 1", "cycle = 1\nnanoseconds = true")
    (table,) = load_facility(write(tmp_path, text)).tables
    assert [(column.name, column.signal, str(column.type)) for column in table.columns] == [
        ("b", "a/b", "real"),
        ("nanoseconds", "a/nanoseconds", "smallint"),
    ]
    assert table.nanoseconds == 1
    (table,) = load_facility(write(tmp_path, text.replace("true", "false"))).tables
    assert (table.nanoseconds, len(table.columns)) == (None, 1)
    (problem,) = refusal(tmp_path, text.replace("true", "7"))
    assert problem == "table a: nanoseconds must be true or false"
    (problem,) = refusal(tmp_path, TABLE.format(name="a", column="nanoseconds"))
    assert problem == "table a: column nanoseconds: write nanoseconds = true in the table instead"


@pytest.mark.parametrize(
    ("log", "policy"),
    [
        ('"every"', LogPolicy()),
        ("{ nth = 10 }", LogPolicy(nth=10)),
        ("{ period = 60 }", LogPolicy(period=60.0)),
        ("{ period = 0.5 }", LogPolicy(period=0.5)),
    ],
)
def test_log_policies(tmp_path: Path, log: str, policy: LogPolicy) -> None:
    facility = load_facility(write(tmp_path, VALID.replace('"every"', log)))
    assert facility.tables[0].log == policy
    assert policy.every == (log == '"every"')


@pytest.mark.parametrize("text", ["1 day", "3650 days", "1 week", "6 months", "1000 years"])
def test_retentions(tmp_path: Path, text: str) -> None:
    facility = load_facility(write(tmp_path, VALID.replace("10 years", text)))
    assert isinstance(facility.tables[0].retention, Retention)
    assert str(facility.tables[0].retention) == text


@pytest.mark.parametrize(
    "kind", ["real", "double", "int", "smallint", "bigint", "bit", "varchar(1)", "varchar(10485760)"]
)
def test_types(tmp_path: Path, kind: str) -> None:
    text = TABLE.format(name="a", column="b").replace('"real"', f'"{kind}"')
    assert load_facility(write(tmp_path, text)).tables[0].columns[0].type == ColumnType.of(kind)


@pytest.mark.parametrize(("old", "new", "problem"), cases(__file__, "refusals"))
def test_refusals(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert VALID.count(old) >= 1
    assert refusal(tmp_path, VALID.replace(old, new, 1)) == (problem,)


@pytest.mark.parametrize("name", ["seq_no", "time"])
def test_key_columns_are_reserved(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path, TABLE.format(name="a", column=name)) == (
        f"table a, column {name}: name is taken: every table has seq_no and time by itself",
    )


@pytest.mark.parametrize("name", ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"])
def test_system_columns_are_reserved(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path, TABLE.format(name="a", column=name)) == (
        f"table a, column {name}: name is taken: PostgreSQL has a column {name} in every table",
    )


def test_names_that_fit_postgresql(tmp_path: Path) -> None:
    table, column = "t" * 51, "c" * 63
    assert load_facility(write(tmp_path, TABLE.format(name=table, column=column)))
    assert refusal(tmp_path, TABLE.format(name=table + "t", column=column)) == (
        f"table {table}t: name '{table}t' has 52 characters; the longest name of its procedures leaves 51",
    )
    assert refusal(tmp_path, TABLE.format(name=table, column=column + "c")) == (
        f"table {table}, column {column}c: name '{column}c' has 64 characters; a PostgreSQL name leaves 63",
    )


def test_no_tables(tmp_path: Path) -> None:
    assert refusal(tmp_path, "") == ("there must be at least one [[table]]",)
    assert refusal(tmp_path, "table = 1") == ("there must be at least one [[table]]",)


def test_no_columns(tmp_path: Path) -> None:
    text = '[[table]]\nname = "a"\nrows = 1\ncycle = 1\n'
    assert refusal(tmp_path, text) == ("table a: there must be at least one [[table.column]]",)


def test_repeated_names(tmp_path: Path) -> None:
    text = TABLE.format(name="a", column="b") + TABLE.format(name="a", column="c")
    assert refusal(tmp_path, text) == ("two tables are named a",)
    text = TABLE.format(name="a", column="b") + '[[table.column]]\nname = "b"\ntype = "int"\nsignal = "x"\n'
    assert refusal(tmp_path, text) == ("table a: two columns are named b",)


def test_repeated_signals(tmp_path: Path) -> None:
    text = TABLE.format(name="a", column="b") + 'signal = "x/y"\n' + TABLE.format(name="c", column="d")
    assert refusal(tmp_path, text + 'signal = "x/y"\n') == (
        "table c, column d: signal 'x/y' is the one of a.b already",
    )


@pytest.mark.parametrize(("one", "other", "problem"), cases(__file__, "tables_with_procedures_of_one_name"))
def test_tables_with_procedures_of_one_name(tmp_path: Path, one: str, other: str, problem: str) -> None:
    text = TABLE.format(name=one, column="b") + TABLE.format(name=other, column="b")
    assert refusal(tmp_path, text) == (problem,)


def test_all_problems_at_once(tmp_path: Path) -> None:
    text = VALID.replace("rows = 3000", "rows = -1").replace('"UTC"', '"Moon"').replace('"real"', '"float"')
    text += TABLE.format(name="b", column="time")
    assert [problem.split(":")[0].split(" '")[0] for problem in refusal(tmp_path, text)] == [
        "timezone",
        "table sr_mag_ps",
        "table sr_mag_ps, column current_{n}",
        "table b, column time",
    ]


def test_files_that_are_not_toml(tmp_path: Path) -> None:
    assert refusal(tmp_path, "name = ")[0].startswith("is not TOML: ")
    (tmp_path / "facility.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(FacilityError, match="is not TOML"):
        load_facility(tmp_path / "facility.toml")
    with pytest.raises(FacilityError, match=r"nowhere.toml: cannot be read: No such file or directory"):
        load_facility(tmp_path / "nowhere.toml")
    with pytest.raises(FacilityError, match=r"cannot be read: Is a directory"):
        load_facility(tmp_path)


@pytest.mark.parametrize(
    ("table", "column", "complaint"), cases(__file__, "a_wrong_sampling_policy_is_refused")
)
def test_a_wrong_sampling_policy_is_refused(tmp_path: Path, table: str, column: str, complaint: str) -> None:
    file = tmp_path / "f.toml"
    head = f'[[table]]\nname = "t"\nrows = 3\ncycle = 1\n{table}\n'
    file.write_text(f'{head}[[table.column]]\nname = "c"\ntype = "real"\n{column}\n')
    with pytest.raises(FacilityError, match=re.escape(complaint)):
        load_facility(file)


def test_an_error_has_its_line_and_names_the_key_that_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(
        """timezones = "UTC"
description = '''
[[table]]
rows = 1
'''

[[table]]
name = "a"
rows = 5
cycl = 1.0
column = [{ name = "v", type = "float" }]

[[table]]
name = "b"
rows = 5
cycle = 1.0

[[table.column]]
name = "v"
type = "real"

[[table.column]]
name = "w"
type = "real"
limits = [3, 1]
"""
    )
    with pytest.raises(FacilityError) as error:
        load_facility(file)
    lines = str(error.value).splitlines()
    for line, words in (
        (1, "'timezones' is no key of a facility: did you mean 'timezone'?"),
        (2, "'description' is no key of a facility"),
        (7, "table a: cycle is missing"),
        (10, "table a: 'cycl' is no key of a table: did you mean 'cycle'?"),
        (25, "table b, column w: limits must be low before high, not 3 and 1"),
    ):
        assert f"{file}:{line}: {words}" in lines
    (typed,) = (line for line in lines if "type 'float'" in line)
    assert typed.startswith(f"{file}:11: table a, column v: ")
    assert len(lines) == 6


def test_sampling_policies_are_read(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(
        '[[table]]\nname = "t"\nrows = 3\ncycle = 1\ncollect = 0.5\n'
        'sample = { mode = "monitor", min_period = 0.5, max_period = 60 }\n'
        '[[table.column]]\nname = "a"\ntype = "real"\ndeadband = 0.5\n'
        '[[table.column]]\nname = "b"\ntype = "real"\ndeadband = "0.5 %"\n'
        '[[table.column]]\nname = "c"\ntype = "real"\n'
    )
    (table,) = load_facility(file).tables
    assert table.sample == Sampling("monitor", 0.5, 60.0)
    assert table.collect == 0.5
    assert [column.deadband for column in table.columns] == [Deadband(0.5), Deadband(0.005, True), None]


def test_clock_tolerance_and_nan(tmp_path: Path) -> None:
    table = TABLE.format(name="a", column="b")
    assert load_facility(write(tmp_path, table)).clock_tolerance == timedelta(days=1)
    for text, tolerance in (
        ("90 minutes", timedelta(minutes=90)),
        ("1 week", timedelta(weeks=1)),
        ("none", None),
    ):
        assert (
            load_facility(write(tmp_path, f'clock_tolerance = "{text}"\n' + table)).clock_tolerance
            == tolerance
        )
    with_nan = table.replace("cycle = 1\n", 'cycle = 1\nnan = "null"\n')
    assert load_facility(write(tmp_path, with_nan)).tables[0].nan == "null"
    assert refusal(tmp_path, 'clock_tolerance = "soon"\n' + with_nan.replace('"null"', '"0"')) == (
        'clock_tolerance \'soon\' must be minutes, hours, days or weeks, as "1 day", or "none"',
        "table a: nan '0' is neither keep nor null",
    )


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "facility.toml"
    file.write_bytes(b"\xef\xbb\xbf" + TABLE.format(name="a", column="b").encode())
    assert load_facility(file).tables[0].name == "a"


def written(tmp_path: Path, head: str, of_the_table: str = "") -> Path:
    file = tmp_path / "f.toml"
    file.write_text(
        f'{head}\n[[table]]\nname = "t"\nrows = 10\ncycle = 1\n{of_the_table}\n'
        '[[table.column]]\nname = "a"\ntype = "real"\n'
    )
    return file


def test_the_location_of_old_weeks(tmp_path: Path) -> None:
    assert load_facility(written(tmp_path, "")).history is None
    head = '[history]\nonline = "8 weeks"\narchive = "/data/archive"'
    history = load_facility(written(tmp_path, head)).history
    assert history is not None
    assert (str(history.online), history.archive) == ("8 weeks", "/data/archive")
    assert str(history.keep_replaced) == "30 days"
    history = load_facility(written(tmp_path, f'{head}\nkeep_replaced = "1 year"')).history
    assert history is not None
    assert str(history.keep_replaced) == "1 year"


@pytest.mark.parametrize(("head", "problem"), cases(__file__, "invalid_locations_of_old_weeks"))
def test_invalid_locations_of_old_weeks(tmp_path: Path, head: str, problem: str) -> None:
    with pytest.raises(FacilityError) as refused:
        load_facility(written(tmp_path, head))
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("of_the_table", "summaries"),
    [
        # of at least 30 rows of the log
        ("", (60, 600, 3600, 86_400)),
        ("log = { nth = 10 }", (600, 3600, 86_400)),
        ("log = { period = 60 }", (3600, 86_400)),
        ('summaries = ["1 day", "10 s"]', (10, 86_400)),
        ("summaries = []", ()),
    ],
)
def test_spans_of_summaries(tmp_path: Path, of_the_table: str, summaries: tuple[int, ...]) -> None:
    assert load_facility(written(tmp_path, "", of_the_table)).tables[0].summaries == summaries


def test_an_unknown_span_of_summaries(tmp_path: Path) -> None:
    with pytest.raises(FacilityError, match="summaries must be a list of some of"):
        load_facility(written(tmp_path, "", 'summaries = ["2 h"]'))


NODE = """
[[node]]
name = "b"
dsn = "host=10.0.0.5,10.0.0.6 dbname=plant user=keeper"
"""


def test_tables_on_nodes(tmp_path: Path) -> None:
    there = TABLE.format(name="a", column="x").replace("rows", 'node = "b"\nrows')
    facility = load_facility(write(tmp_path, NODE + there + TABLE.format(name="c", column="y")))
    assert facility.nodes == (Node("b", "host=10.0.0.5,10.0.0.6 dbname=plant user=keeper"),)
    assert [(table.name, table.node) for table in facility.tables] == [("a", "b"), ("c", None)]
    assert [table.name for table in facility.of("b").tables] == ["a"]
    assert [table.name for table in facility.of(None).tables] == ["c"]


@pytest.mark.parametrize(
    ("archive", "of_node"),
    [
        ("/data/archive", "/data/archive/nodes/b"),
        ("s3://bucket/plant?region=eu-1", "s3://bucket/plant/nodes/b?region=eu-1"),
    ],
)
def test_a_node_has_its_own_archive(tmp_path: Path, archive: str, of_node: str) -> None:
    there = TABLE.format(name="a", column="x").replace("rows", 'node = "b"\nrows')
    history = f'[history]\nonline = "8 weeks"\narchive = "{archive}"\n'
    facility = load_facility(write(tmp_path, history + NODE + there))
    assert facility.of(None).history == History(Retention(8, "week"), archive)
    assert facility.of("b").history == History(Retention(8, "week"), of_node)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('"b"\ndsn', '"c"\ndsn'), "table a: there is no [[node]] of name 'b'"),
        ((NODE, NODE + NODE), "two nodes are named b"),
        (
            ("user=keeper", "password=k"),
            "node b: dsn must not hold the password, which everyone reads here: put it into ~/.pgpass",
        ),
        (("host=10.0.0.5,10.0.0.6 ", ""), "node b: dsn must name host"),
        (
            ("user=keeper", "odd"),
            'node b: dsn cannot be read: missing "=" after "odd" in connection info string',
        ),
        (
            ('"b"\ndsn', '"B"\ndsn'),
            "node B: name 'B' must be a lower-case letter, then letters, digits and _",
        ),
    ],
)
def test_invalid_nodes(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    there = TABLE.format(name="a", column="x").replace("rows", 'node = "b"\nrows')
    assert problem in refusal(tmp_path, (NODE + there).replace(*change))


CAPTURE = """
[[capture]]
name = "trip"
signals = ["sr_mag_*"]
tables = ["magnets"]
[groups]
magnets = ["sr_mag_ps"]
"""


def with_capture(old: str = "", new: str = "") -> str:
    limited = VALID.replace("limits = [-500.0, 500.0]", "alarm_limits = [-500.0, 500.0]")
    return limited + CAPTURE.replace(old, new)


def test_capture(tmp_path: Path) -> None:
    (rule,) = load_facility(write(tmp_path, with_capture())).captures
    assert (rule.name, rule.signals, rule.tables) == ("trip", ("sr_mag_*",), ("sr_mag_ps",))
    assert (rule.before, rule.after, rule.pause, rule.keep_days) == (10, 10, 600, None)


@pytest.mark.parametrize(("old", "new", "complaint"), cases(__file__, "a_wrong_capture_is_refused"))
def test_a_wrong_capture_is_refused(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert refusal(tmp_path, with_capture(old, new)) == (f"capture trip: {complaint}",)


def test_a_capture_of_signals_without_limits_is_refused(tmp_path: Path) -> None:
    problem = "capture trip: signals: 'sr_mag_*' has no alarm_limits"
    assert refusal(tmp_path, VALID + CAPTURE) == (problem,)
