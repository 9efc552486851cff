create or replace function ringlog.dense_spans(
  name text, from_time timestamptz, to_time timestamptz, gap interval, out spans tstzmultirange
)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  location record;
  found tstzmultirange;
begin
  spans := '{}';
  for location in
    select each.table_name, concat_ws('.', each.column_name, each.scalar) as column_name,
      greatest(each.begins, from_time) as begins, least(each.ends, to_time) as ends, make_interval(secs => level.seconds) as width,
      level.seconds
    from ringlog.trend_places(array[name]) as each
    join ringlog.summarised as known on known.table_name = each.table_name
    cross join lateral (
      select max(seconds) from unnest(known.levels) as seconds where 2 * seconds <= extract(epoch from gap)
    ) as level (seconds)
    where each.begins < to_time and each.ends > from_time and level.seconds is not null
  loop
    execute format(
      $query$
        with block as (
          select block.n, block.begins, block.begins + (cardinality(block.n) - 1) * $3 as last
          from summary.%I as block
          where block.level = $4 and block.column_name = $5 and block.begins < $2
            -- no block is longer than 72 spans
            and block.begins > $1 - 72 * $3
        ), span as (
          select block.begins as first, block.last from block
          where 0 <> all (block.n) and block.begins >= $1 and block.last + $3 <= $2
          union all
          select at.first, at.first
          from block
          cross join unnest(block.n) with ordinality as bin (n, number)
          cross join lateral (select block.begins + (bin.number - 1) * $3) as at (first)
          where (0 <> all (block.n) and block.begins >= $1 and block.last + $3 <= $2) is not true
            and bin.n > 0 and at.first >= $1 and at.first + $3 <= $2
        )
        select range_agg(tstzrange(case when pair.first + $3 - pair.former <= $6 then pair.former else pair.first end, pair.last))
        from (select span.*, lag(span.last) over (order by span.first) as former from span) as pair
      $query$,
      location.table_name
    ) into found using location.begins, location.ends, location.width, location.seconds, location.column_name, gap;
    -- rows of these spans may be others now
    spans := spans + coalesce(found, '{}') - coalesce((
      select range_agg(tstzrange(mark."time" - gap, mark."time" + gap)) from ringlog.summary_mark as mark
      where mark.table_name = location.table_name and mark."time" between from_time - gap and to_time + gap
        and (mark.column_name is null or mark.column_name = location.column_name)
    ), '{}');
  end loop;
end
$$;
comment on function ringlog.dense_spans is
$$Times in which, as summaries show, the next number of a signal always comes before the last is `gap` old: the spans of the
summaries that have numbers, of the longest level of at most half of `gap`, follow each other closely enough.$$;
grant execute on function ringlog.dense_spans to daq_reader, daq_table_reader;
