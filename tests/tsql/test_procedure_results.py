"""The answers of procedures in T-SQL: result sets, counts, messages, the ends of statements; cursors and
temporary tables."""

from procedure_site import Site


def test_result_sets_counts_and_messages_come_in_order(site: Site, points: None) -> None:
    site.define(
        """create procedure several as
        print 'first'
        insert points values (1, 'a', 1.5)
        select id, name from points
        update points set value = 2 where id = 1
        select value as v from points
        print 'last'"""
    )
    called = site.call("several")
    assert called.rows == [[(1, "a")], [(2.0,)]]
    assert called.events == [
        ("print", "first"), ("count", 1), ("rows", 0), ("count", 1), ("rows", 1), ("print", "last"),
    ]  # fmt: skip
    assert called.status == 0


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
    called = site.call("told")
    assert (called.prints, called.ended) == (["1", "2"], [""] * (1 + 1 + 3 + 2 + 1 + 1 + 1))
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
    called = site.call("told_failed")
    assert called.ended == ["", "failed", "failed", ""]
    assert [error[0] for error in called.errors] == [50000, 515]


def test_temporary_tables_end_with_their_procedure(site: Site, points: None) -> None:
    site.run("insert into site.points values (1, 'a', 1), (2, 'b', 2)")
    site.define(
        """create procedure uses_temporary @n int as
        create table #work (id int, twice float)
        insert #work select id, value * 2 from points
        if @n = 1
        begin
            select * from #work order by id
            return 1
        end
        drop table #work
        select id into #work from points where id = 2
        exec reads_temporary"""
    )
    site.define("create procedure reads_temporary as select count(*) from #work")
    for _ in range(2):
        called = site.call("uses_temporary", 1)
        assert called.rows == [[(1, 2.0), (2, 4.0)]]
        assert site.call("uses_temporary", 2).rows == [[(1,)]]
    assert site.rows("select to_regclass('pg_temp.\"#work\"')") == [(None,)]


def test_a_temporary_table_is_dropped_while_rows_are_read_from_it(site: Site) -> None:
    site.define(
        """create procedure drops_early as
        create table #early (id int)
        insert #early values (1)
        select * from #early
        drop table #early
        create table #early (id int, more int)
        insert #early values (2, 3)
        select * from #early
        drop table #early
        drop table if exists #early
        drop table #early"""
    )
    for _ in range(3):
        called = site.call("drops_early")
        assert called.rows == [[(1,)], [(2, 3)]]
        assert [number for number, *_ in called.errors] == [3701]
    site.define("alter procedure drops_early as select id = 1 into #early select * from #early")
    for _ in range(3):
        assert site.call("drops_early").rows == [[(1,)]]
    (left,) = site.rows(
        "select count(*) from pg_class where relnamespace = pg_my_temp_schema() and relname like '#%'"
    )
    assert left == (1,), "the one whose rows were read last"


def test_a_result_set_has_the_time_of_its_select(site: Site) -> None:
    site.define("create procedure waits as select getdate() waitfor delay '00:00:00.2' select getdate()")
    ((first,),), ((second,),) = site.call("waits").rows
    assert (second - first).total_seconds() > 0.15


def test_cursors_of_both_dialects(site: Site, points: None) -> None:
    site.run("insert into site.points values (1, 'a', 1.5), (2, 'b', 2.5), (3, 'c', 4)")
    site.define(
        """create procedure walks @from int as
        declare @id int, @value float, @sum float, @rows int
        set @sum = 0
        declare c cursor local fast_forward for select id, value from points where id >= @from order by id
        set @from = 100
        open c
        fetch next from c into @id, @value
        while @@fetch_status = 0
        begin
            set @sum = @sum + @value
            delete points where id = @id
            fetch next from c into @id, @value
        end
        set @rows = @@fetch_status
        close c
        deallocate c
        select @id, @sum, @rows"""
    )
    called = site.call("walks", 2)
    # the value at DECLARE is used, a fetch after the last row leaves the variables unchanged, the rows are
    # those at OPEN
    assert called.rows == [[(3, 6.5, -1)]]
    assert site.rows("select id from site.points") == [(1,)]
    site.define(
        """create procedure walks5 @from int as
        declare @id int
        declare crsr cursor for select id from points where id >= @from for read only
        select @from = 1
        open crsr
        fetch crsr into @id
        while (@@sqlstatus != 2)
        begin
            print "row %1!", @id
            fetch crsr into @id
        end
        close crsr
        open crsr
        fetch crsr into @id
        close crsr
        deallocate cursor crsr
        return @@sqlstatus""",
        sybase=True,
    )
    called = site.call("walks5", 50)
    assert called.prints == ["row 1"], "the value at OPEN counts"
    assert called.status == 0


def test_rows_assigned_to_variables_are_counted(site: Site, points: None) -> None:
    """As in SQL Server."""
    site.run("insert into site.points values (1, 'a', 1), (2, 'b', 2)")
    site.define("create procedure assigns @n int output as select @n = id from points order by id")
    called = site.call("assigns", 0)
    assert (called.events, called.outputs) == ([("assigned", 2)], {"n": 2})
