"""spring8.py has the figures of papers/004, sections 2 and 5.1."""

import pytest
import sqlalchemy as sa

from ringlog.schema.column_type import Kind
from ringlog.schema.facility import Facility
from ringlog.schema.facility_files import spring8
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing.install import install

FILE = spring8.file()


@pytest.fixture(scope="module")
def facility() -> Facility:
    return load_facility(str(FILE))


def test_60_tables(facility: Facility) -> None:
    assert len(facility.tables) == 60


def test_226_parameter_tables(facility: Facility) -> None:
    """Section 2."""
    assert len(facility.parameters) == 226
    assert all(column.description for parameter in facility.parameters for column in parameter.columns)


def test_9152_columns_with_sequential_number_and_time(facility: Facility) -> None:
    assert sum(2 + len(table.columns) for table in facility.tables) == 9152


def test_at_most_250_data_in_a_table(facility: Facility) -> None:
    assert max(len(table.columns) for table in facility.tables) == 250


def test_a_table_of_200_columns(facility: Facility) -> None:
    """The one that the paper's second measurement writes."""
    assert len(next(table for table in facility.tables if table.name == "sr_mag_ps").columns) == 200


def test_rings_of_2000_to_4000_rows(facility: Facility) -> None:
    rows = [table.rows for table in facility.tables]
    assert (min(rows), max(rows)) == (2000, 4000)


def test_cycles_of_1_to_30_seconds(facility: Facility) -> None:
    cycles = [table.cycle for table in facility.tables]
    assert (min(cycles), max(cycles)) == (1.0, 30.0)


def test_6400_bytes_a_second(facility: Facility) -> None:
    """At 4 bytes a value; the columns are chosen so that only rounding is left."""
    rate = sum(4 * len(table.columns) / table.cycle for table in facility.tables)
    assert rate == pytest.approx(6400, rel=1e-9)


def test_most_tables_log_every_row(facility: Facility) -> None:
    assert sum(table.log.every for table in facility.tables) == 57
    assert {(table.log.nth > 1, table.log.period is not None) for table in facility.tables} == {
        (False, False),
        (True, False),
        (False, True),
    }


def test_every_number_has_limits_and_a_description(facility: Facility) -> None:
    for table in facility.tables:
        assert table.description
        for column in table.columns:
            assert column.description
            assert (column.limits is None) == (column.type.is_text or column.type.kind is Kind.BIT)


@pytest.mark.long
def test_it_installs(facility: Facility, engine: sa.Engine) -> None:
    install(engine, facility)
    assert not install(engine, facility)
    with engine.connect() as connection:
        signals = connection.scalar(sa.text("select count(*) from ringlog.signal"))
        parameters = connection.scalar(sa.text("select count(*) from ringlog.parameter_table"))
    assert signals == 9152 - 2 * 60
    assert parameters == 226


def test_the_file_equals_the_scripts_output() -> None:
    assert FILE.read_text() == "\n".join(spring8.toml()) + "\n"
