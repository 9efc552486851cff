create or replace function ringlog.losses(
  from_time timestamptz default null, to_time timestamptz default null, of_table text default null
) returns table (
  table_name text, hour timestamptz, produced bigint, acknowledged bigint, in_log bigint, thinned bigint,
  refused bigint, waiting bigint, late bigint, repeated bigint, missing bigint
)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  book record;
begin
  for book in
    select
      ledger.table_name,
      ledger.hour,
      sum(ledger.produced)::bigint as produced,
      sum(ledger.acknowledged)::bigint as acknowledged,
      sum(ledger.thinned)::bigint as thinned,
      sum(ledger.refused)::bigint as refused,
      sum(ledger.late)::bigint as late,
      sum(ledger.repeated)::bigint as repeated,
      bool_and(sampled.table_name is not null or logged_table.log_nth = 1 and logged_table.log_period is null)
        as all_logged,
      bool_and(sampled.table_name is not null) as is_sampled
    from ringlog.ledger
    left join ringlog.logged_table on logged_table.table_name = ledger.table_name
    left join ringlog.sample_table as sampled on sampled.table_name = ledger.table_name
    where (logged_table.table_name is not null or sampled.table_name is not null)
      and (losses.from_time is null or ledger.hour + interval '1 hour' > losses.from_time)
      and (losses.to_time is null or ledger.hour < losses.to_time)
      and (losses.of_table is null or ledger.table_name = losses.of_table)
    group by ledger.table_name, ledger.hour
    order by ledger.hour, ledger.table_name
  loop
    table_name := book.table_name;
    hour := book.hour;
    produced := book.produced;
    acknowledged := book.acknowledged;
    thinned := book.thinned;
    refused := book.refused;
    waiting := book.produced - book.acknowledged - book.thinned - book.refused;
    late := book.late;
    repeated := book.repeated;
    -- archived rows are not counted
    in_log := null;
    if not exists (
      select from ringlog.cold_week as week
      where week.table_name = book.table_name and week.recalled_until is null
        and week.begins <= book.hour and book.hour < week.ends
    ) then
      execute format(
        'select %s from weeks.%I as logged where logged."time" >= $1 and logged."time" < $1 + interval ''1 hour''',
        case when book.is_sampled then 'coalesce(sum(logged.n), 0)' else 'count(*)' end, book.table_name
      ) into in_log using book.hour;
    end if;
    missing := case
      when book.all_logged and in_log is not null then
        greatest(
          book.acknowledged - in_log - (
            -- what put_<table>_batch has dropped
            select coalesce(sum(event.rows), 0) from ringlog.event
            where book.is_sampled and event.table_name = book.table_name and event.kind in ('paused', 'clock')
              and event.spool = format('put_%s_batch %s', book.table_name, event.kind)
              and event.number = extract(epoch from book.hour)::bigint
          ),
          0
        )
    end;
    return next;
  end loop;
end
$$;
comment on function ringlog.losses is
$$Counts of the rows of ringlog's writers, by table and hour: produced by the source; acknowledged; in_log, counted now,
with the rows of other writers; thinned in a spool that was full or damaged; refused for their content; waiting in the spool at the writer's
last report; late, after later rows; repeated calls. missing are acknowledged rows that are not in the log: 0, or null
where a log policy omits rows. The rows of a table of samples are samples. In weeks that are in the archive in_log and missing are null.$$;
grant execute on function ringlog.losses to daq_reader, daq_table_reader;
