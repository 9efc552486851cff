create or replace function ringlog.get_signal(
  name text, from_time timestamptz default null, to_time timestamptz default null, max_rows integer default null,
  every double precision default null
) returns table ("time" timestamptz, value double precision)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  location record;
  rows_left integer := max_rows;
  rows_got integer;
begin
  if not exists (select from ringlog.signal where signal.signal = name) then
    perform ringlog.demand_here(array[name]);
    raise exception 'get_signal: there is no signal ''%''', name
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
  if every is not null then
    if every > 0 is not true or every > 1e9 or from_time is null or not isfinite(from_time) then
      raise exception 'get_signal: every (%) must be seconds, and goes with from_time', every
        using errcode = 'invalid_parameter_value';
    end if;
    return query
      select bin."time", bin.first
      from ringlog.signal_bins(
        array[name],
        from_time,
        case when isfinite(to_time) then to_time else now() end,
        every * interval '1 second',
        case when every = floor(every) then 'epoch' else from_time end
      ) as bin
      where bin.n > 0
      limit max_rows;
    return;
  end if;
  for location in
    select
      found.table_name,
      found.column_name,
      found.type,
      known.is_of_samples,
      greatest(from_time, found.begins) as begins,
      least(to_time, found.ends) as ends
    from ringlog.signal_places(array[name]) as found
    join ringlog.every_table as known on known.table_name = found.table_name
    order by found.begins
  loop
    perform ringlog.demand_number(
      'get_signal', name, location.type, 'get_waveforms',
      format(case when location.is_of_samples then 'get_%s' else 'get_%s_range' end, location.table_name)
    );
    perform ringlog.reads_archive(location.table_name, location.begins, location.ends);
    if location.is_of_samples then
      return query execute format(
        'select each."time", each.value%s::double precision from ringlog.%I($1, $2, $3, $4, $5) as each',
        case location.type when 'bit' then '::integer' end,
        'get_' || location.table_name
      ) using name, location.begins, location.ends, rows_left, location.column_name::integer;
      get diagnostics rows_got = row_count;
      rows_left := rows_left - rows_got;
      continue;
    end if;
    return query execute format(
      'select logged."time", logged.%I%s::double precision '
      'from log.%I as logged where logged."time" >= $1 and logged."time" < $2 '
      'order by logged."time", logged.seq_no limit $3',
      location.column_name,
      case location.type when 'bit' then '::integer' end,
      location.table_name
    ) using location.begins, location.ends, rows_left;
    get diagnostics rows_got = row_count;
    rows_left := rows_left - rows_got;
  end loop;
end
$$;
comment on function ringlog.get_signal is
$$The values of a signal in the log from from_time (inclusive) to to_time (exclusive), oldest first, at most max_rows of
them; a bound that is omitted or null does not limit. It reads all columns that have stored the signal (see
ringlog.signal). With `every` it returns the first number of each interval of so many seconds, at the interval's begin:
counted from 1970 for whole seconds, otherwise from from_time, which is then required. A null value is a row without a
reading; a bit is 0 or 1; a bigint beyond 2^53 is rounded. Errors: a signal that never existed (42704), a varchar signal
or a waveform (42804), every without from_time (22023), weeks of that time in an archive that PostgreSQL cannot read, or with `every` in any (RL003).$$;
grant execute on function ringlog.get_signal to daq_reader, daq_table_reader;
