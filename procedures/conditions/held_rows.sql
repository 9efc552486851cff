create or replace function ringlog.held_rows(name text, parts tstzmultirange, gap interval)
returns table (part integer, begins timestamptz, ends timestamptz, number double precision, word text, is_carried boolean)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  from_time constant timestamptz := lower(parts);
  to_time constant timestamptz := upper(parts);
  opens constant timestamptz[] := array(select lower(each) from unnest(parts) as each);
  closes constant timestamptz[] := array(select upper(each) from unnest(parts) as each);
  location record;
  value text;
  sources text;
  since timestamptz;
  newest_time timestamptz;
  newest_number double precision;
  newest_word text;
begin
  for location in
    select found.*, known.is_of_samples, row_number() over (order by found.begins) as number,
      case when known.is_of_samples then 'value' else found.column_name end as stored
    from ringlog.trend_places(array[name]) as found
    join ringlog.every_table as known on known.table_name = found.table_name
    where found.begins < to_time
    order by found.begins desc
  loop
    value := case
      when location.type like 'varchar%' or location.type = 'text' then format('null::double precision, logged.%I::text', location.stored)
      when location.scalar is null then format(
        'nullif(logged.%I%s::double precision, ''NaN''), null::text', location.stored, case location.type when 'bit' then '::integer' end
      )
      else format(
        '(select nullif(scalars.%I, ''NaN'') from ringlog.waveform_scalars(logged.%I%s::double precision[]) as scalars), null::text',
        location.scalar, location.stored, case location.type when 'bit[]' then '::integer[]' end
      )
    end;
    -- usually a row is near, and no plan over all weeks of the log is needed
    foreach since in array array[from_time - interval '1 day', '-infinity'] loop
      exit when newest_time is not null or location.begins >= from_time;
      since := greatest(since, location.begins, from_time - gap + interval '1 microsecond');
      if not location.is_of_samples then
        perform ringlog.reads_archive(location.table_name, since, least(from_time, location.ends));
      end if;
      execute format(
        case
          when location.is_of_samples then
            'select logged."time", %s from ringlog.%I(least($1, $2) - interval ''1 microsecond'', %s) as logged where logged."time" >= $3'
          else
            'select logged."time", %s from log.%I as logged where logged."time" < least($1, $2) and logged."time" >= $3 '
            'order by logged."time" desc, logged.seq_no desc limit 1'
        end,
        value, case when location.is_of_samples then format('get_%s_at', location.table_name) else location.table_name end, location.column_name
      ) into newest_time, newest_number, newest_word using from_time, location.ends, since;
    end loop;
    if not location.is_of_samples then
      perform ringlog.reads_archive(location.table_name, greatest(lower(each), location.begins), least(upper(each), location.ends))
      from unnest(parts * tstzmultirange(tstzrange(location.begins, location.ends))) as each
      -- a call takes as long as some rows
      where exists (select from ringlog.cold_week as week where week.table_name = location.table_name);
    end if;
    sources := concat_ws(' union all ', sources, format(
      'select part.number::integer, %s, logged."time", logged.%s::integer, %s '
      'from unnest($1, $2) with ordinality as part (opens, closes, number) cross join lateral (%s) as logged',
      location.number, case when location.is_of_samples then 'nanoseconds' else 'seq_no' end, value,
      format(
        case
          when location.is_of_samples then 'select * from ringlog.%1$I(null, greatest(part.opens, %3$L), least(part.closes, %4$L), null, %5$s) offset 0'
          else 'select * from log.%2$I as each where each."time" >= greatest(part.opens, %3$L) and each."time" < least(part.closes, %4$L) offset 0'
        end,
        'get_' || location.table_name, location.table_name, location.begins, location.ends, location.column_name
      )
    ));
  end loop;
  if sources is null then
    return;
  end if;
  return query execute format(
    $query$
    select held.part, greatest(held."time", $1[held.part]),
      least(lead(held."time") over by_time, $2[held.part], case when held.location >= 0 then held."time" + $3 end),
      held.number, held.word, held.location < 0
    from (
      %s
      union all
      select each.number::integer, -1, each.opens, 0, null, null from unnest($1) with ordinality as each (opens, number) where each.number > 1
      union all
      select 1, 0, $4, 0, $5, $6 where $4 is not null
    ) as held (part, location, "time", row, number, word)
    window by_time as (partition by held.part order by held."time", held.location, held.row)
    $query$,
    sources
  ) using opens, closes, gap, newest_time, newest_number, newest_word;
end
$$;
comment on function ringlog.held_rows is
$$The rows of a signal in these parts of time, each with the time for which it is held: to the next row, to the part's end, or for
`gap`, whichever is first. `number` is null for NaN and for no reading; of texts `word`. The first part has the newest row before
it too; each other part begins with a row that stands for the state before it (`is_carried`).$$;
grant execute on function ringlog.held_rows to daq_reader, daq_table_reader;
