"""Parameter tables: set points changed by people and programs, whose earlier states can all be queried."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from psycopg import errors, sql

from ringlog.schema.facility import Facility
from ringlog.schema.facility_files.facility_file import FacilityError, load_facility
from ringlog.schema.installing.install import InstallRefused, install

from .conftest import Connect, connected

FILE = Path(__file__).with_name("parameters.toml").read_text()


def facility(folder: Path, text: str = FILE) -> Facility:
    file = folder / "facility.toml"
    file.write_text(text)
    return load_facility(file)


class Parameters:
    """A database with the two parameter tables, empty, and connections to it."""

    def __init__(self, connect: Connect) -> None:
        self.connect = connect
        self.connection = connect()

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql.SQL(statement), values or None).fetchall()

    def value(self, statement: str, *values: object) -> Any:
        ((value,),) = self.rows(statement, *values)
        return value

    def set(
        self, current: float | None, device: str = "b1", mode: int = 1, **more: object
    ) -> tuple[Any, ...]:
        """Sets a current; version, change and time."""
        given = "".join(f", {name} => %({name})s" for name in more)
        statement = sql.SQL(
            "select * from ringlog.set_magnet(row (%(device)s, %(mode)s, %(current)s, null, null, null)"
            f"::parameter.magnet_row{given})"
        )
        values = {"device": device, "mode": mode, "current": current, **more}
        row = self.connection.execute(statement, values).fetchone()
        assert row is not None
        return row

    def now(self) -> list[tuple[Any, ...]]:
        return self.rows("select device, mode, version, current from ringlog.get_magnet()")

    def at(self, moment: object) -> list[tuple[Any, ...]]:
        return self.rows("select device, mode, version, current from ringlog.get_magnet_at(%s)", moment)


@pytest.fixture(scope="module")
def installed(
    prepared_databases: Callable[[], AbstractContextManager[sa.URL]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sa.URL]:
    with prepared_databases() as url:
        engine = sa.create_engine(url)
        read = facility(tmp_path_factory.mktemp("parameters"))
        assert install(engine, read)
        assert not install(engine, read)
        engine.dispose()
        yield url


@pytest.fixture
def parameters(installed: sa.URL) -> Iterator[Parameters]:
    with ExitStack() as connections:
        opened = Parameters(lambda: connections.enter_context(connected(installed)))
        opened.connection.execute(
            "truncate parameter_rows.magnet, parameter_rows.optics, ringlog.parameter_change,"
            " ringlog.parameter_snapshot"
        )
        yield opened


def test_a_row_is_made_changed_and_removed(parameters: Parameters) -> None:
    first = parameters.set(10.0, comment="first")
    second = parameters.set(11.5)
    assert (first[0], second[0]) == (1, 2)
    assert parameters.now() == [("b1", 1, 2, 11.5)]
    (removed,) = parameters.rows("select changed from ringlog.remove_magnet('b1', 1, 'broken', 2)")
    assert parameters.now() == []
    assert parameters.at(first[2]) == [("b1", 1, 1, 10.0)]
    assert parameters.at(second[2]) == [("b1", 1, 2, 11.5)]
    assert parameters.at(removed[0]) == []
    assert parameters.set(12.0)[0] == 3


def test_trailing_blanks_of_a_key_are_ignored(parameters: Parameters) -> None:
    """A C program sends a char(10) with trailing blanks."""
    first = parameters.set(10.0, "b1 ")
    parameters.set(11.0, "b1       ")
    parameters.rows('select ringlog.set_magnet_rows(\'[{"device": "b1  ", "mode": 1, "current": 12}]\')')
    assert parameters.now() == [("b1", 1, 3, 12.0)]
    assert parameters.rows("select current from ringlog.get_magnet('b1 ')") == [(12.0,)]
    assert parameters.rows("select current from ringlog.get_magnet_at(%s, 'b1   ')", first[2]) == [(10.0,)]
    assert parameters.value("select count(*) from ringlog.history_magnet('b1  ')") == 3
    parameters.rows("select ringlog.revert_magnet(%s, 'b1  ')", first[2])
    assert parameters.now() == [("b1", 1, 4, 10.0)]
    parameters.rows("select changed from ringlog.remove_magnet('b1  ', 1)")
    assert parameters.now() == []


def test_an_omitted_column_remains_and_a_cleared_one_does_not(parameters: Parameters) -> None:
    parameters.rows(
        "select * from ringlog.set_magnet(row ('b1', 1, 5, 0.1, true, 'spare')::parameter.magnet_row)"
    )
    parameters.set(6.0)
    shown = 'select current, slope, "on", note from parameter.magnet'
    assert parameters.rows(shown) == [(6.0, pytest.approx(0.1), True, "spare")]
    parameters.set(None, clear="slope, note")
    assert parameters.rows(shown) == [(6.0, None, True, None)]
    with pytest.raises(errors.UndefinedColumn, match="clear names device"):
        parameters.set(None, clear="device")


def test_an_existing_value_is_no_change(parameters: Parameters) -> None:
    first = parameters.set(10.0)
    assert parameters.set(10.0, comment="again") == first
    assert parameters.value("select count(*) from ringlog.parameter_changes()") == 1


def test_author_time_value_and_comment(parameters: Parameters) -> None:
    parameters.connection.execute("set application_name = 'orbit tool'")
    parameters.set(1.0, comment="injection is better so")
    parameters.set(2.0)
    shown = parameters.rows(
        "select version, changed_by, program, comment, valid_to is null, ended_by"
        " from ringlog.history_magnet()"
    )
    login = parameters.value("select session_user::text")
    assert shown == [
        (1, login, "orbit tool", "injection is better so", False, login),
        (2, login, "orbit tool", None, True, None),
    ]


@pytest.mark.parametrize("current", [500.5, -1e9, float("nan"), float("inf")])
def test_limits_are_enforced(parameters: Parameters, current: float) -> None:
    parameters.set(1.0)
    with pytest.raises(
        errors.CheckViolation, match=r"magnet \(b1, 1\): current = .* outside its limits, -500"
    ):
        parameters.set(current)
    assert parameters.now() == [("b1", 1, 1, 1.0)]


def test_no_number_is_refused_where_there_are_no_limits(parameters: Parameters) -> None:
    with pytest.raises(errors.CheckViolation, match="slope = NaN is no number"):
        parameters.rows('select ringlog.set_magnet_rows(\'[{"device": "b1", "mode": 1, "slope": "NaN"}]\')')


def test_a_change_of_an_older_version_names_who_changed_it_before(parameters: Parameters) -> None:
    (version, *_) = parameters.set(1.0)
    parameters.set(2.0, version=version, comment="tune")
    with pytest.raises(
        errors.SerializationFailure,
        match=r"magnet \(b1, 1\) has version 2 and not 1, by a change of postgres at .* \(tune\): nothing",
    ):
        parameters.set(3.0, version=version)
    assert parameters.now() == [("b1", 1, 2, 2.0)]
    with pytest.raises(errors.SerializationFailure, match="has version 2 and not 0"):
        parameters.set(3.0, version=0)
    with pytest.raises(errors.SerializationFailure, match="was removed, and had version"):
        parameters.set(3.0, device="b9", version=4)
    with pytest.raises(errors.SerializationFailure):
        parameters.rows("select ringlog.remove_magnet('b1', 1, null, 1)")


def test_several_rows_are_one_change_or_none(parameters: Parameters) -> None:
    rows: list[dict[str, object]] = [
        {"device": f"b{n}", "mode": 1, "current": n, "on": True} for n in range(1, 4)
    ]
    call = "select changed_rows, change, changed from ringlog.set_magnet_rows(%s, 'all of them')"
    ((number, change, moment),) = parameters.rows(call, json.dumps(rows))
    assert number == 3
    assert parameters.rows("select distinct change, valid_from from parameter_history.magnet") == [
        (change, moment)
    ]
    rows[0]["current"] = None
    rows[1]["version"] = 1
    rows[2]["current"] = 501
    with pytest.raises(errors.CheckViolation):
        parameters.rows(call, json.dumps(rows))
    rows[2]["current"] = 33
    assert parameters.rows(call, json.dumps(rows))[0][0] == 2
    assert [row[3] for row in parameters.now()] == [None, 2.0, 33.0]
    for wrong, error in (
        ([{"device": "b1", "mode": 1, "curent": 1}], errors.UndefinedColumn),
        ([{"device": "b1"}], errors.NotNullViolation),
        ({}, errors.InvalidParameterValue),
        ([1], errors.InvalidParameterValue),
        ([{"device": "b1", "mode": "x"}], errors.InvalidTextRepresentation),
    ):
        with pytest.raises(error):
            parameters.rows(call, json.dumps(wrong))
    with pytest.raises(errors.InvalidTextRepresentation):
        parameters.rows(call, "no JSON")


def test_the_calls_of_a_transaction_are_one_change(parameters: Parameters) -> None:
    with parameters.connection.transaction():
        first = parameters.set(1.0, comment="both")
        second = parameters.set(2.0, device="b2", comment="both")
        again = parameters.set(3.0)
    assert first[1] == second[1] == again[1]
    assert (first[0], again[0]) == (1, 1)
    assert parameters.at(first[2]) == [("b1", 1, 1, 3.0), ("b2", 1, 1, 2.0)]
    with parameters.connection.transaction(force_rollback=True):
        parameters.set(9.0)
    assert parameters.value("select count(*) from ringlog.parameter_changes()") == 1
    with parameters.connection.transaction():
        parameters.set(9.0, device="b3")
        parameters.rows("select ringlog.remove_magnet('b3', 1)")
    assert parameters.value("select count(*) from parameter_history.magnet where device = 'b3'") == 0


def test_a_query_for_a_time_waits_for_its_changes(parameters: Parameters) -> None:
    """A query for a time during a change of the table waits for the end of the change."""
    changing, asking = parameters.connect(), parameters.connect()
    with ThreadPoolExecutor(1) as pool:
        with changing.transaction():
            changing.execute(
                "select ringlog.set_magnet(row ('b1', 1, 7, null, null, null)::parameter.magnet_row)"
            )
            assert parameters.now() == []
            # a moment long past is answered at once
            assert parameters.at("2020-01-01") == []
            moment = parameters.value("select clock_timestamp()")
            answer = pool.submit(
                lambda: asking.execute("select current from ringlog.get_magnet_at(%s)", [moment]).fetchall()
            )
            waits = "select count(*) from pg_locks where pid = %s and not granted"
            while not parameters.value(waits, asking.info.backend_pid):
                assert not answer.done()
        assert answer.result() == [(7.0,)]


def test_differences_between_two_times(parameters: Parameters) -> None:
    parameters.set(1.0, "b1")
    first = parameters.set(2.0, "b2")[2]
    parameters.set(1.5, "b1")
    parameters.rows("select ringlog.remove_magnet('b2', 1)")
    second = parameters.set(3.0, "b3")[2]
    call = (
        "select device, mode, change_kind, value_before, value_after from ringlog.diff_magnet(%s, %s)"
        " where column_name = 'current'"
    )
    assert parameters.rows(call, first, second) == [
        ("b1", 1, "changed", "1", "1.5"),
        ("b2", 1, "removed", "2", None),
        ("b3", 1, "added", None, "3"),
    ]
    assert parameters.rows(call, first, first) == []
    assert parameters.value("select count(*) from ringlog.diff_magnet(%s)", second) == 0


def test_back_to_an_earlier_state(parameters: Parameters) -> None:
    parameters.set(1.0, "b1")
    first = parameters.set(2.0, "b2")[2]
    parameters.set(1.5, "b1")
    parameters.rows("select ringlog.remove_magnet('b2', 1)")
    parameters.set(3.0, "b3")
    before = parameters.now()
    last = parameters.value("select max(valid_from) from parameter_history.magnet")
    call = "select changed_rows from ringlog.revert_magnet(%s, comment => %s)"
    assert parameters.value(call, first, "back") == 3
    assert [(device, current) for device, _, _, current in parameters.now()] == [("b1", 1.0), ("b2", 2.0)]
    assert parameters.value(call, first, "back") == 0
    assert parameters.value("select changed_rows from ringlog.revert_magnet(%s, 'b1')", last) == 1
    assert parameters.value(call, last, None) == 2
    assert [(device, current) for device, _, _, current in parameters.now()] == [
        (device, current) for device, _, _, current in before
    ]


def test_named_states_of_all_tables(parameters: Parameters) -> None:
    parameters.set(1.0)
    parameters.rows("select ringlog.set_optics(row (7, 1, 2, 3)::parameter.optics_row)")
    golden = parameters.value("select ringlog.save_snapshot('golden orbit 2026-11', 'best so far')")
    with pytest.raises(errors.UniqueViolation, match="there is a snapshot 'golden orbit 2026-11' already"):
        parameters.rows("select ringlog.save_snapshot('golden orbit 2026-11')")
    parameters.set(2.0)
    parameters.rows("select ringlog.set_optics(row (7, 1.5, null, null)::parameter.optics_row)")
    assert parameters.rows("select * from ringlog.compare_snapshot('golden orbit 2026-11')") == [
        ("magnet", "b1, 1", "changed", "current", "1", "2"),
        ("optics", "7", "changed", "k_1", "1", "1.5"),
    ]
    parameters.rows("select ringlog.save_snapshot('before', null, %s)", golden)
    assert parameters.rows("select * from ringlog.compare_snapshot('before', 'golden orbit 2026-11')") == []
    ((number, change),) = parameters.rows(
        "select changed_rows, change from ringlog.restore_snapshot('golden orbit 2026-11')"
    )
    assert number == 2
    assert parameters.now() == [("b1", 1, 3, 1.0)]
    assert parameters.rows("select k_1, version from ringlog.get_optics(7)") == [(1.0, 3)]
    assert parameters.rows(
        "select distinct comment from parameter_history.magnet where change = %s", change
    ) == [("snapshot golden orbit 2026-11",)]
    assert [row[0] for row in parameters.rows("select * from ringlog.snapshots('golden%')")] == [
        "golden orbit 2026-11"
    ]
    parameters.rows("select ringlog.forget_snapshot('before')")
    with pytest.raises(errors.NoDataFound, match="there is no snapshot 'before'"):
        parameters.rows("select ringlog.restore_snapshot('before')")


def test_rows_of_one_key_never_overlap(parameters: Parameters) -> None:
    """PostgreSQL enforces it for every writer."""
    parameters.set(1.0)
    with pytest.raises(errors.ExclusionViolation):
        parameters.connection.execute(
            "insert into parameter_rows.magnet (device, mode, version, change, valid)"
            " select device, mode, 9, change, valid from parameter_rows.magnet"
        )


def test_a_change_that_is_not_committed_soon_is_refused(parameters: Parameters) -> None:
    with pytest.raises(errors.SerializationFailure, match="within 50 seconds"):
        parameters.connection.execute(
            'insert into ringlog.parameter_change ("time", login, program, machine, transaction)'
            " values (now() - interval '51 seconds', 'x', '', '', pg_current_xact_id())"
        )


def test_joined_with_measured_values(parameters: Parameters) -> None:
    """The current with its set point at that time."""
    moment = parameters.set(10.0)[2]
    parameters.set(20.0)
    parameters.connection.execute("select ringlog.put_ring(row (1, %s, 9.5)::online.ring)", [moment])
    assert parameters.rows(
        "select measured.value, wanted.current from ringlog.get_signal('ring/current') as measured"
        " cross join lateral ringlog.get_magnet_at(measured.\"time\", 'b1', 1) as wanted"
    ) == [(9.5, 10.0)]
    assert parameters.rows(
        "select measured.value, wanted.current from ringlog.get_signal('ring/current') as measured"
        " join parameter_history.magnet as wanted on wanted.device = 'b1'"
        ' and measured."time" >= wanted.valid_from'
        ' and (measured."time" < wanted.valid_to or wanted.valid_to is null)'
    ) == [(9.5, 10.0)]


def test_additions_of_the_file(engine: sa.Engine, tmp_path: Path, connect: Connect) -> None:
    install(engine, facility(tmp_path))
    parameters = Parameters(connect)
    parameters.set(1.0)
    more = FILE.replace(
        'name = "slope"', 'name = "offset"\ntype = "int"\n[[parameter.column]]\nname = "slope"'
    )
    report = install(engine, facility(tmp_path, more))
    assert report.created == ("column magnet.offset",)
    parameters.rows('select ringlog.set_magnet_rows(\'[{"device": "b1", "mode": 1, "offset": 4}]\')')
    assert parameters.rows('select version, current, "offset" from ringlog.get_magnet()') == [(2, 1.0, 4)]
    narrow = more.replace("[-500.0, 500.0]", "[0.0, 0.5]")
    changed = install(engine, facility(tmp_path, narrow)).changed
    assert "parameter magnet: column current: limits -500 to 500 → 0 to 0.5" in changed
    with pytest.raises(errors.CheckViolation):
        parameters.rows("select ringlog.set_magnet(row ('b1', 1, 0.7, 0, true, '', 4)::parameter.magnet_row)")
    # existing values may stay while others change
    parameters.rows('select ringlog.set_magnet_rows(\'[{"device": "b1", "mode": 1, "offset": 5}]\')')
    assert parameters.rows(
        "select table_name, column_name, limit_high from ringlog.find_parameters('%current')"
    ) == [("magnet", "current", 0.5)]
    for lost, words in (
        (more.replace('name = "note"', 'name = "remark"'), "column note: is VARCHAR"),
        (more.replace('key = ["device", "mode"]', 'key = "device"'), "its key is device, mode and stays so"),
        (
            more[: more.index('[[parameter]]\nname = "optics"')],
            "parameter optics: is not in the facility file",
        ),
    ):
        with pytest.raises(InstallRefused, match=words) as refused:
            install(engine, facility(tmp_path, lost))
    parameters.connection.execute(refused.value.obstacles[0].sql)
    assert install(engine, facility(tmp_path, lost)).created == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('key = "number"', ""), "parameter optics: key is missing"),
        (('key = "number"', 'key = "nummer"'), "parameter optics: key 'nummer' is none of its columns"),
        (
            ('key = "number"', 'key = "k_1"'),
            "column k_1: a key is of int, smallint, bigint or varchar(n), not double",
        ),
        (('name = "note"', 'name = "comment"'), "name is taken: every parameter table has comment by itself"),
        (('type = "bit"', 'type = "real[]"\npoints = 4'), "a parameter is a single value"),
        (('name = "optics"', 'name = "magnet"'), "two parameters are named magnet"),
        (
            ('name = "optics"', 'name = "ring"'),
            "parameter ring: choose another name, for table ring has a procedure get_ring",
        ),
        (('name = "optics"', 'name = "magnet_row"'), "name must not end in _row"),
        (
            ('name = "optics"', 'name = "magnet_at"'),
            "choose another name, for parameter magnet has a procedure get_magnet_at",
        ),
    ],
)
def test_refused_facility_files(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    with pytest.raises(FacilityError) as error:
        facility(tmp_path, FILE.replace(*change))
    assert problem in str(error.value)
