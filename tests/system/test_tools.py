"""What administrative clients read of the catalogue, and how long it takes with many tables."""

from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from case_tables import cases

from tds_clients import Clients, result_sets


@pytest.mark.parametrize("text", cases(__file__, "statements_of_tools"))
def test_statements_of_tools(clients: Clients, text: str) -> None:
    """All are answered by result sets; a view of what does not exist here is empty."""
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        results = result_sets(cursor, text)
    assert len(results) == (not text.startswith("set "))


def test_the_catalogue_of_many_tables(admin: psycopg.Connection[tuple[Any, ...]]) -> None:
    """The rows of all columns, and one object's, without reading the others for each."""
    with admin.transaction(force_rollback=True):
        admin.execute(
            "do $$ begin for n in 1..300 loop execute format('create table online.many_%s (id integer primary"
            " key, a varchar(20) default ''x'', b timestamp, c real, d numeric(9, 2) check (d > 0))', n);"
            " execute format('create function online.one_%s(a integer) returns integer language sql as"
            " ''select a''', n); end loop; end $$"
        )

        def ran() -> int:
            """Nanoseconds that the session has had a processor, however busy the machine is."""
            return int(Path(f"/proc/{admin.info.backend_pid}/schedstat").read_text().split()[0])

        def work(query: LiteralString, expected: int) -> int:
            taken = []
            for _ in range(3):
                start = ran()
                assert len(admin.execute(query).fetchall()) >= expected
                taken.append(ran() - start)
            return min(taken)

        plain = work(
            "select attname, format_type(atttypid, atttypmod),"
            " has_column_privilege(attrelid, attnum, 'select'), col_description(attrelid, attnum)"
            " from pg_attribute where attrelid in (select oid from pg_class"
            " where relname like 'many%' and relkind = 'r')"
            " and attnum > 0",
            1500,
        )
        columns = (
            "select c.*, t.name, d.definition from sys.all_columns c"
            " join sys.all_objects t on t.object_id = c.object_id"
            " left join sys.default_constraints d on d.object_id = c.default_object_id"
            " where t.schema_id operator(tsql.=) 1 and t.type operator(tsql.=) 'U'"
        )
        texts = (
            "select p.name, m.definition, s.definition from sys.all_objects p"
            " left join sys.sql_modules m on m.object_id = p.object_id"
            " left join sys.system_sql_modules s on s.object_id = p.object_id"
            " where p.type operator(tsql.=) 'P' and p.is_ms_shipped operator(tsql.=) 0"
        )
        one = "select definition from sys.sql_modules where object_id = (select sys.object_id('one_7'))"
        assert work(columns, 1500) < 40 * plain
        assert work(texts, 300) < 40 * plain
        assert work(one, 1) < 20 * plain


def test_the_files_and_permissions_of_a_database(clients: Clients) -> None:
    text = (
        "exec sp_helpdb log"
        " select name, type_desc, data_space_id from sys.database_files"
        " select permission_name from fn_my_permissions('sr_rf', 'OBJECT') where subentity_name = ''"
        " select name from sys.databases where database_id < 5 order by database_id"
    )
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        (helped,), (file,), *others = result_sets(cursor, text)
    assert (helped[0], file[0]) == ("log", "log")
    assert others == [
        [("online", "ROWS", 1)],
        [("SELECT",), ("VIEW DEFINITION",)],
        [("master",), ("tempdb",)],
    ]


def test_views_of_what_there_is_one_or_none_of(clients: Clients) -> None:
    text = (
        "select name, is_linked from sys.servers select count(*) from msdb.sys.tables"
        " select s.name, d.type_desc from sys.indexes i"
        " join sys.data_spaces d on d.data_space_id = i.data_space_id"
        " join sys.stats s on s.object_id = i.object_id and s.stats_id = i.index_id"
        " where i.object_id = object_id('sr_rf') order by 1"
    )
    with clients.pymssql(clients.server.reader) as connection, connection.cursor() as cursor:
        indexes = [(f"sr_rf_{end}", "ROWS_FILEGROUP") for end in ("pkey", "time_idx")]
        expected = [[("ringlog", False)], [(0,)], indexes]
        assert result_sets(cursor, text) == expected
