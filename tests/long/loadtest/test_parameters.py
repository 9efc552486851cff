"""Parameter tables in a load."""

import psycopg
import sqlalchemy as sa

from ringlog.loadtest.parameters import ROWS, fill, of_a_reader
from ringlog.loadtest.reader import question
from ringlog.schema.facility_files import spring8
from ringlog.schema.facility_files.facility_file import load_facility
from ringlog.schema.installing.install import install

SPRING8 = load_facility(spring8.file())


def test_readers_together_query_every_parameter_table() -> None:
    asked: list[str] = []
    for index, table in enumerate(SPRING8.tables):
        parameters = of_a_reader(SPRING8, index)
        procedures = [question(table, number, parameters)[0] for number in range(20 * len(parameters))]
        of_parameters = [each for each in procedures if each.removeprefix("get_") in parameters]
        assert len(of_parameters) == len(procedures) / 20
        # the others as without parameters
        assert procedures.count(f"get_{table.name}_range") == len(procedures) / 10
        asked += of_parameters
    assert sorted(asked) == sorted(f"get_{parameter.name}" for parameter in SPRING8.parameters)
    assert [question(SPRING8.tables[0], number, ())[0] for number in range(20)].count("get_sr_mag_ps") == 18


def test_every_parameter_table_has_rows(database_url: sa.URL) -> None:
    engine = sa.create_engine(database_url)
    install(engine, SPRING8)
    with engine.connect() as connection:
        admin = connection.connection.driver_connection
        assert isinstance(admin, psycopg.Connection)
        fill(admin, SPRING8)
        for parameter in SPRING8.parameters:
            found = admin.execute(f"select * from ringlog.get_{parameter.name}()".encode()).fetchall()
            assert len(found) == ROWS
            width = len(parameter.columns)
            assert all(value is not None for row in found for value in row[:width])
    engine.dispose()
