create or replace function ringlog.waveforms_of(
  name text, begins timestamptz, ends timestamptz, newest_first boolean, max_rows integer, every_nth integer
) returns table ("time" timestamptz, value double precision[])
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  location record;
  query text;
  points text;
  log text;
  since timestamptz;
  lower timestamptz;
  upper timestamptz;
  rows_left integer := max_rows;
  rows_got integer;
begin
  if not exists (select from ringlog.signal where signal.signal = name) then
    perform ringlog.demand_here(array[name]);
    raise exception 'there is no signal ''%''', name
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
  for location in
    select signal.table_name, signal.column_name, signal.type, signal.valid_from, signal.valid_to, known.is_of_samples,
      -- a column's first signal also has earlier rows, such as imported ones
      not exists (
        select from ringlog.signal as earlier
        where earlier.table_name = signal.table_name
          and earlier.column_name = signal.column_name
          and earlier.valid_from < signal.valid_from
      ) as is_first
    from ringlog.signal
    join ringlog.every_table as known on known.table_name = signal.table_name
    where signal.signal = name
    order by
      case when newest_first then signal.valid_from end desc,
      signal.valid_from
  loop
    if location.type not like '%[]' then
      raise exception 'signal ''%'' is no waveform (%)', name, location.type
        using errcode = 'datatype_mismatch', hint = 'Call get_signal.';
    end if;
    if location.type like 'varchar%' then
      raise exception 'signal ''%'' is no waveform of numbers (%)', name, location.type
        using errcode = 'datatype_mismatch', hint = format('Call get_%s_range.', location.table_name);
    end if;
    -- PostgreSQL computes with a boolean only as an integer
    points := format(
      '%I::%s',
      case when location.is_of_samples then 'value' else location.column_name end,
      case location.type when 'bit[]' then 'integer[]::double precision[]' else 'double precision[]' end
    );
    lower := greatest(begins, case when not location.is_first then location.valid_from end);
    upper := least(ends, location.valid_to);
    if newest_first and location.is_of_samples then
      -- usually the newest sample is a reading
      foreach since in array array[ends, case when isfinite(ends) then ends else now() end - interval '14 days', begins]
      loop
        execute format(
          case
            when since = ends then 'select got."time", got.%1$s from ringlog.%2$I($1, $3) as got where got."time" >= $2'
            else
              'select got."time", got.%1$s from ringlog.%3$I(null, $2, $1 + interval ''1 microsecond'', null, $3) as got'
              ' where got.value is not null order by got."time" desc, got.nanoseconds desc limit 1'
          end,
          points, 'get_' || location.table_name || '_at', 'get_' || location.table_name
        )
        into "time", value using upper, greatest(case when since < ends then since end, lower), location.column_name::integer;
        exit when value is not null or "time" is null and since = ends;
      end loop;
      if value is not null then
        return next;
        exit;
      end if;
      continue;
    end if;
    log := case
      when location.is_of_samples then format(
        '(select got."time", got.nanoseconds as seq_no, got.value from ringlog.%I(null, $1, $2, null, %s) as got)',
        'get_' || location.table_name, location.column_name
      )
      else format('log.%I', location.table_name)
    end;
    query := case
      when newest_first then
        'select taken."time", taken.value from ('
        '  (select ring."time", ring.seq_no, ring.%1$s as value from online.%2$I as ring'
        '   where ring."time" >= $1 and ring."time" <= $2 and ring.%3$I is not null'
        '   order by ring."time" desc, ring.seq_no desc limit 1)'
        '  union all'
        '  (select logged."time", logged.seq_no, logged.%1$s from %4$s.%2$I as logged'
        '   where logged."time" >= $1 and logged."time" <= $2 and logged.%3$I is not null'
        '   order by logged."time" desc, logged.seq_no desc limit 1)'
        ') as taken order by taken."time" desc, taken.seq_no desc limit 1'
      when every_nth > 1 then
        'select numbered."time", numbered.value from ('
        '  select logged."time", logged.seq_no, logged.%1$s as value,'
        '    row_number() over (order by logged."time", logged.seq_no) as number'
        '  from %5$s as logged'
        '  where logged."time" >= $1 and logged."time" < $2 and logged.%6$I is not null'
        ') as numbered where (numbered.number - 1) %% $3 = 0'
        ' order by numbered."time", numbered.seq_no limit $4'
      else
        'select logged."time", logged.%1$s from %5$s as logged'
        ' where logged."time" >= $1 and logged."time" < $2 and logged.%6$I is not null'
        ' order by logged."time", logged.seq_no limit $4'
    end;
    if not newest_first then
      perform ringlog.reads_archive(location.table_name, lower, upper);
      return query execute format(
        query, points, null, null, null, log, case when location.is_of_samples then 'value' else location.column_name end
      )
        using lower, upper, every_nth, rows_left;
      get diagnostics rows_got = row_count;
      rows_left := rows_left - rows_got;
      exit when rows_left = 0;
      continue;
    end if;
    -- usually one is near, and no plan over all weeks of the log is needed
    foreach since in array
      array[case when isfinite(ends) then ends else now() end - interval '14 days', begins]
    loop
      execute format(query, points, location.table_name, location.column_name, 'weeks')
      into "time", value using greatest(since, lower), upper;
      exit when "time" is not null or since = begins;
    end loop;
    lower := coalesce("time", lower);
    -- a later one may be in the archive
    if ringlog.reads_archive(location.table_name, lower, upper + interval '1 microsecond') then
      execute format(query, points, location.table_name, location.column_name, 'log')
      into "time", value using lower, upper;
    end if;
    if "time" is not null then
      return next;
      exit;
    end if;
  end loop;
end
$$;
comment on function ringlog.waveforms_of is
$$The common part of get_waveform and get_waveforms: the waveforms of a signal in the log from `begins` (inclusive) to
`ends` (exclusive), or (newest_first) the newest one up to `ends` (inclusive). It reads all columns that have stored the signal. Error:
some of them may be in the archive, and PostgreSQL cannot read that (RL003).$$;
grant execute on function ringlog.waveforms_of to daq_reader, daq_table_reader;
