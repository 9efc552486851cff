create or replace function ringlog.notice_alarms(since timestamptz) returns setof text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  rule ringlog.capture_rule;
  watched record;
  start timestamptz;
  source text;
  left_at timestamptz;
  reading text;
  first timestamptz;
  first_reading text;
  message text;
begin
  for rule in
    select * from ringlog.capture_rule as each
    where coalesce(each.latest + make_interval(secs => each.pause) <= now(), true)
    order by each.name
  loop
    first := null;
    start := greatest(since, rule.latest + make_interval(secs => rule.pause));
    begin
      for watched in
        select
          known.table_name, there.is_of_samples, min(known.type) as type, array_agg(known.signal) as signals, array_agg(known.column_name) as columns,
          array_agg(coalesce(known.alarm_low, '-infinity')) as low, array_agg(coalesce(known.alarm_high, 'infinity')) as high,
          string_agg(format(
            case known.type when 'bit' then '%I::integer::double precision' else '%I::double precision' end, known.column_name
          ), ', ') as readings
        from ringlog.signal as known
        join ringlog.every_table as there on there.table_name = known.table_name and not there.retired
        where known.valid_to is null and known.signal like any (rule.signals)
          and (known.alarm_low is not null or known.alarm_high is not null) and known.type not like '%[]'
        group by 1, 2
      loop
        -- each reading with the one before it
        source := case
          when watched.is_of_samples then format(
            'select ringlog.moment(each."time") as "time", known.signal, known.low, known.high, each.value, before.value as was'
            ' from unnest($2, $3, $4, $5::integer[]) as known (signal, low, high, number)'
            ' join weeks.%1$I as block on block.signal = known.number'
            ' cross join lateral unnest(block.times, block.samples%2$s::double precision[]) as each ("time", value)'
            ' left join lateral (select earlier.value from ('
            ' select near.* from weeks.%1$I as near where near.signal = known.number'
            ' and near.begins <= ringlog.moment(each."time") order by near."time" desc limit 3) as near'
            ' cross join lateral unnest(near.times, near.samples%2$s::double precision[]) as earlier ("time", value)'
            ' where earlier."time" < each."time" order by earlier."time" desc limit 1) as before on true'
            ' where block.signal = any ($5::integer[]) and block."time" >= $1',
            watched.table_name, case watched.type when 'bit' then '::integer[]' end
          )
          else format(
            'select each."time", known.*'
            ' from (select "time", seq_no, array[%1$s] as readings from online.%2$I where "time" >= $1 and "time" <= now()) as each'
            ' left join lateral (select array[%1$s] as readings from online.%2$I as earlier'
            ' where (earlier."time", earlier.seq_no) < (each."time", each.seq_no)'
            ' order by earlier."time" desc, earlier.seq_no desc limit 1) as before on true'
            ' cross join lateral unnest($2, $3, $4, each.readings, before.readings) as known (signal, low, high, value, was)',
            watched.readings, watched.table_name
          )
        end;
        execute format(
          'select each."time", format(''%%s = %%s, outside %%s to %%s'', each.signal, each.value, each.low, each.high)'
          ' from (%s) as each'
          ' where each."time" >= $1 and each."time" <= now() and each.value not between each.low and each.high and each.value <> ''NaN'''
          ' and (each.was not between each.low and each.high and each.was <> ''NaN'') is not true'
          ' order by 1 limit 1',
          source
        ) into left_at, reading using start, watched.signals, watched.low, watched.high, watched.columns;
        if left_at < coalesce(first, 'infinity') then
          first := left_at;
          first_reading := reading;
        end if;
      end loop;
      continue when first is null;
      perform ringlog.capture_event(
        rule.name, first, rule.before, rule.after, rule.tables, keep_days => rule.keep_days,
        note => concat_ws(': ', nullif(rule.note, ''), first_reading)
      );
      update ringlog.capture_rule as each set latest = first, trouble = null where each.name = rule.name;
    exception when others then
      -- the other rules must not wait for this one
      get stacked diagnostics message = message_text;
      update ringlog.capture_rule as each set latest = now(), trouble = message where each.name = rule.name;
      return next format('capture %s: %s', rule.name, message);
    end;
  end loop;
end
$$;
comment on function ringlog.notice_alarms is
$$Housekeeping of captures: registers an event for each rule of the facility file of which a signal has left its alarm limits
since this time. Returns a line for each event that was refused.$$;
