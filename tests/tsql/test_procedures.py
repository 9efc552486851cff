"""Procedures in T-SQL, run by PostgreSQL: compiled, created, called, and read as by the gateway, result sets
by the cursors that notices name. Here: parameters, variables, control flow.
"""

import psycopg
import pytest
from procedure_site import Site


def test_parameters_defaults_outputs_and_status(site: Site) -> None:
    site.define(
        """create procedure scaled
            @value float, @factor float = 2.5, @name varchar(4) = 'none', @result float output
        as
        begin
            set @result = @value * @factor
            if @name = 'none' return 1
            return 2
        end"""
    )
    assert site.call("scaled", 2.0, result=None).outputs == {"result": 5.0}
    assert site.call("scaled", 2.0, result=None).status == 1
    assert site.call("scaled", value=3.0, factor=1.0, name="long name", result=0.0).status == 2
    with pytest.raises(psycopg.Error, match="expects parameter '@result', which was not supplied") as missing:
        site.call("scaled", 2.0)
    assert missing.value.sqlstate == "TS001"
    assert (missing.value.diag.message_detail or "").startswith("201 16 ")


def test_a_procedure_that_only_writes_is_a_function_that_may_share_transactions(
    site: Site, points: None
) -> None:
    site.define(
        """create procedure put_point @id int, @value float as
        set nocount on
        update points set value = @value where id = @id
        if @@rowcount = 0 insert points (id, value) values (@id, @value)"""
    )
    (kind,) = site.rows(
        """select p.prokind, p.prosecdef, p.provolatile, p.proretset, p.proconfig, o.rolcanlogin
        from pg_proc p join pg_roles o on o.oid = p.proowner where p.proname = 'put_point'"""
    )
    assert kind == ("f", True, "v", False, ["search_path=site, online, log, ringlog, pg_temp"], False)
    assert site.call("put_point", 1, 2.5).status == 0
    assert site.call("put_point", 1, 3.5).events == []
    assert site.rows("select id, value from site.points") == [(1, 3.5)]
    site.define("create procedure point_told @id int as select value from points where id = @id")
    (kind,) = site.rows("select prokind from pg_proc where proname = 'point_told'")
    assert kind == ("p",), "what sends rows runs on a connection of its own"


def test_variables_are_distinct_from_columns(site: Site, points: None) -> None:
    """A column is never confused with a parameter of the same name, nor with a variable of PL/pgSQL."""
    site.define(
        """create procedure named @id int, @name varchar(10), @value float as
        insert points (id, name, value) values (@id, @name, @value)
        update points set value = value + @value, name = name + @name where id = @id"""
    )
    site.call("named", 1, "a", 1.0)
    site.call("named", 2, "b", 2.0)
    assert site.rows("select * from site.points order by id") == [(1, "aa", 2.0), (2, "bb", 4.0)]
    site.define("create procedure no_column @value int, @status int as select status from points")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        site.call("no_column", 1, 2)


def test_procid_and_database(site: Site) -> None:
    site.define("create procedure tells_itself as select @@procid, db_name(), user_name()")
    ((procid, database, user),) = site.call("tells_itself").rows[0]
    assert site.rows("select 'site.tells_itself'::regproc::oid::integer") == [(procid,)]
    assert (database, user) == ("site", "postgres")
