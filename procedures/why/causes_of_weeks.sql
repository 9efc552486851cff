create or replace function ringlog.causes_of_weeks(
  of_table text, of_column text, from_time timestamptz, to_time timestamptz
) returns table (cause text, since timestamptz, until timestamptz, at tstzrange, rows bigint, evidence text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select 'set aside', aside.begins, aside.ends, tstzrange(aside.begins, aside.ends), null::bigint,
    format(
      'set aside since %s, until %s: ringlog weeks restore %s', aside.since,
      aside.since + (select keep_dropped::interval from ringlog.housekeeping), of_table
    )
  from ringlog.set_aside as aside
  where aside.table_name = of_table
  union all
  select 'past retention', lower(week.at), upper(week.at), week.at, null, format('retention has removed all weeks before %s', gone.until)
  from ringlog.dropped as gone
  cross join lateral unnest(tstzmultirange(tstzrange('-infinity', gone.until)) - coalesce((
    select range_agg(there.at)
    from (
      select tstzrange(aside.begins, aside.ends) as at from ringlog.set_aside as aside where aside.table_name = of_table
      union all
      select tstzrange(week.begins, week.ends) from ringlog.cold_week as week where week.table_name = of_table
      union all
      select tstzrange((bounds[1])::timestamptz, (bounds[2])::timestamptz)
      from pg_inherits
      join pg_class as child on child.oid = inhrelid
      cross join lateral regexp_match(
        pg_get_expr(child.relpartbound, 0), 'FROM \(''(.+)''\) TO \(''(.+)''\)'
      ) as bounds
      where inhparent = to_regclass(format('weeks.%I', of_table)) and bounds is not null
    ) as there
  ), '{}')) as week (at)
  where gone.table_name = of_table
  union all
  select 'late', min(mark."time"), max(mark."time"), null, count(*),
    'rows of this time came late: trends have them after the next round of housekeeping'
  from ringlog.summary_mark as mark
  where mark.table_name = of_table and mark."time" >= from_time - interval '1 hour' and mark."time" < to_time
    and (mark.column_name is null or mark.column_name = of_column)
  having count(*) > 0
$$;
comment on function ringlog.causes_of_weeks is
$$Weeks that retention has removed or set aside, and late rows that summaries lack, as causes of missing readings; see
causes_of_events. A late row's time `at` is null: it is in the log.$$;
grant execute on function ringlog.causes_of_weeks to daq_reader, daq_table_reader;
