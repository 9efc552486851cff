"""What PostgreSQL keeps of procedures in T-SQL and reports of their calls, which clients do not see.

The other tests of procedures are the cases of tests/tsql/statements, through the gateway.
"""

from procedure_site import Site


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
    site.define("create function twice(@a int) returns int as begin return @a * 2 end")
    assert site.rows("select prosecdef, provolatile from pg_proc where proname = 'twice'") == [(True, "s")]


def test_one_statement_needs_no_block(site: Site) -> None:
    """After an error there is nothing to keep and nothing to continue with."""
    (alone,) = site.compile(
        "create procedure alone @id int as set nocount on insert points values (@id, 'b', 0)"
    )
    assert "exception when" not in alone
    (several,) = site.compile(
        "create procedure several @id int as insert points values (@id, 'b', 0) print 'x'"
    )
    assert "exception when" in several


def test_procid_and_database(site: Site) -> None:
    site.define("create procedure tells_itself as select @@procid, db_name(), user_name()")
    ((procid, database, user),) = site.call("tells_itself").rows[0]
    assert site.rows("select 'site.tells_itself'::regproc::oid::integer") == [(procid,)]
    assert (database, user) == ("site", "postgres")


def test_calls_of_postgresql_functions(site: Site) -> None:
    site.run(
        """create function site.pg_sum(a integer, b float, out total float, out n integer)
        language sql as 'select a + b, 2';
        create function site.pg_rows(n integer) returns table (i integer, half numeric)
        language sql as 'select i, i / 2.0 from generate_series(1, n) i';
        create function site.pg_status(n integer default 9) returns integer language sql as 'select n'"""
    )
    site.define(
        """create procedure calls_postgres as
        declare @total float, @n int, @status int, @b float
        set @b = 2.5
        exec pg_sum 1, @b, @total output, @n = @n output
        exec pg_rows 2
        exec @status = pg_status
        select @total, @n, @status"""
    )
    called = site.call("calls_postgres")
    assert [[*map(float, row)] for row in called.rows[0]] == [[1, 0.5], [2, 1]]
    assert called.rows[1] == [(3.5, 2, 9)]


def test_calls_of_put_with_its_columns_as_parameters(site: Site) -> None:
    site.define(
        """create procedure put_pair @seq_no int, @time datetime, @real float as
        declare @status int
        exec @status = put_every_type @seq_no = @seq_no, @time = @time, @a_real = @real,
            @a_varchar = 'by T-SQL'
        return @status"""
    )
    assert site.call("put_pair", 7, "2024-05-06 07:08:09", 1.25).status == 0
    assert site.rows("select a_real, a_varchar, an_int from online.every_type where seq_no = 7") == [
        (1.25, "by T-SQL", None)
    ]


def test_ends_of_messages_and_cursor_statements_are_sent(site: Site) -> None:
    """microsoft/go-mssqldb, TestSprocWithCursorNoResult. The ends of conditions and assignments are not
    sent.
    """
    body = """
        declare @n int
        declare c cursor for select 1 n union select 2
        open c
        fetch next from c into @n
        while @@fetch_status = 0
        begin
            print @n
            fetch next from c into @n
        end
        close c
        deallocate c
        raiserror ('last', 5, 1)"""
    site.define("create procedure told as" + body)
    assert site.call("told").ended == [""] * (1 + 1 + 3 + 2 + 1 + 1 + 1)
    site.define("create procedure not_told as set nocount on" + body)
    assert not site.call("not_told").ended


def test_ends_of_failed_statements_and_of_definitions_are_sent(site: Site) -> None:
    """MS-TDS 2.2.7.7: DONEINPROC for each executed statement, with DONE_ERROR after an error."""
    site.define(
        """create procedure told_failed as
        create table #t (a int not null)
        raiserror ('no', 16, 1)
        insert #t values (null)
        if @@error = 515 drop table #t"""
    )
    assert site.call("told_failed").ended == ["", "failed", "failed", ""]


def test_severity_state_and_line_of_messages_are_sent(site: Site) -> None:
    site.define(
        """create procedure complains as
        raiserror ('of the %s', 16, 3, 'magnet')
        raiserror ('just so', 10, 1)"""
    )
    assert site.call("complains").events == [
        ("error", 50000, 16, 3, 2, "of the magnet"),
        ("message", 50000, 10, 1, 3, "just so"),
    ]
    site.define("create procedure complains5 as\nraiserror 20001 'beyond'", sybase=True)
    assert site.call("complains5").events == [("error", 20001, 16, 1, 2, "beyond")]


def test_rows_assigned_to_variables_are_counted(site: Site, points: None) -> None:
    """As in SQL Server."""
    site.run("insert into site.points values (1, 'a', 1), (2, 'b', 2)")
    site.define("create procedure assigns @n int output as select @n = id from points order by id")
    called = site.call("assigns", 0)
    assert (called.events, called.outputs) == ([("assigned", 2)], {"n": 2})


def test_the_last_temporary_table_remains_while_its_rows_are_read(site: Site) -> None:
    site.define("create procedure reads_early as select id = 1 into #early select * from #early")
    for _ in range(3):
        assert site.call("reads_early").rows == [[(1,)]]
    (left,) = site.rows(
        "select count(*) from pg_class where relnamespace = pg_my_temp_schema() and relname like '#%'"
    )
    assert left == (1,)


def test_a_result_set_has_the_time_of_its_select(site: Site) -> None:
    site.define("create procedure waits as select getdate() waitfor delay '00:00:00.2' select getdate()")
    ((first,),), ((second,),) = site.call("waits").rows
    assert (second - first).total_seconds() > 0.15
