create or replace function ringlog.missing_rows(
  table_name text, column_name text, from_time timestamptz, to_time timestamptz
) returns table (kind text, at tstzrange, detail text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  setting record;
  step interval;
  longest interval;
  before timestamptz;
begin
  for setting in
    select each.cycle, each.longest, each.settings, greatest(each.begins, from_time) as begins, least(each.ends, to_time) as ends
    from (
      select
        taken.cycle, taken.longest, taken.settings,
        case when lag(taken.valid_from) over (order by taken.valid_from) is null then '-infinity' else taken.valid_from end
          as begins,
        lead(taken.valid_from, 1, 'infinity') over (order by taken.valid_from) as ends
      from ringlog.how_taken as taken
      where taken.table_name = table_name
    ) as each
    where each.begins < to_time and each.ends > from_time
  loop
    step := make_interval(secs => setting.cycle);
    longest := make_interval(secs => greatest(setting.longest, setting.cycle));
    -- from the weeks of PostgreSQL: another week's file may be unreadable
    execute format(
      'select logged."time" from weeks.%I as logged where logged."time" >= $1 and logged."time" < $2'
      ' order by logged."time" desc limit 1',
      table_name
    ) into before using setting.begins - 1.5 * longest, setting.begins;
    return query execute format(
      $query$
        with reading as (
          select each."time", each.is_null, lead(each."time", 1, $2) over (order by each."time") as next
          from (
            select logged."time", logged.%1$I is null as is_null
            from log.%2$I as logged
            where logged."time" >= $1 and logged."time" < $2
            union all
            select $3, false
          ) as each
        )
        select
          each.kind, each.span * tstzrange($1, $2), case each.kind when 'null' then 'NULL was sent' else $6 end
        from reading
        cross join lateral (values
          ('null', case when reading.is_null then
            tstzrange(reading."time", least(reading.next, reading."time" + $4)) end),
          -- rows that the settings leave out
          ('log policy', case when reading.next > reading."time" + 1.5 * $4 and $5 > $4 then
            tstzrange(reading."time" + $4, least(reading.next, reading."time" + $5)) end),
          ('gap', case when reading.next > reading."time" + 1.5 * $5 then
            tstzrange(reading."time" + $5, reading.next) end)
        ) as each (kind, span)
        where (reading.is_null or reading.next > reading."time" + 1.5 * $4) and not isempty(each.span * tstzrange($1, $2))
      $query$,
      column_name, table_name
    ) using setting.begins, setting.ends, coalesce(before, setting.begins - longest), step, longest, setting.settings;
  end loop;
end
$$;
comment on function ringlog.missing_rows is
$$The times from from_time (inclusive) to to_time (exclusive) at which a column of a table of rows has no reading, by kind: gap,
in which rows were due; log policy, in which the table's settings leave rows out (in detail); null, rows with NULL.$$;
grant execute on function ringlog.missing_rows to daq_reader, daq_table_reader;
