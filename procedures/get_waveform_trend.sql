create or replace function ringlog.get_waveform_trend(
  name text,
  from_time timestamptz default now() - interval '1 day',
  to_time timestamptz default now(),
  points integer default 1000
)
returns table (
  "time" timestamptz,
  n bigint,
  min double precision,
  max double precision,
  mean double precision,
  rms double precision,
  shortest integer,
  longest integer,
  nulls bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  place record;
  width interval;
  known boolean := false;
begin
  if from_time < to_time is not true or not (isfinite(from_time) and isfinite(to_time)) then
    raise exception 'get_waveform_trend: from_time (%) must be before to_time (%)', from_time, to_time
      using errcode = 'invalid_parameter_value';
  end if;
  if points is null or points not between 1 and 1000000 then
    raise exception 'get_waveform_trend: points must be from 1 to 1000000, not %', points
      using errcode = 'invalid_parameter_value';
  end if;
  width := ceil(extract(epoch from to_time - from_time) * 1000000 / points) * interval '1 microsecond';
  for place in select * from ringlog.signal_places(array[name]) as found order by found.begins loop
    known := true;
    if place.type not like '%[]' or place.type like 'varchar%' then
      raise exception 'signal ''%'' is no waveform of numbers (%)', name, place.type
        using errcode = 'datatype_mismatch', hint = 'get_trend gives the trend of single numbers.';
    end if;
    perform ringlog.demand_online(
      place.table_name, greatest(from_time, place.begins), least(to_time, place.ends)
    );
    return query execute format(
      'select date_bin($1, logged."time", $2) as bin, count(logged.%1$I), '
      'min(one.low), max(one.high), sum(one.total) / nullif(sum(one.numbers), 0), '
      'sqrt(sum(one.squares) / nullif(sum(one.numbers), 0)), '
      'min(cardinality(logged.%1$I)), max(cardinality(logged.%1$I)), count(*) - count(logged.%1$I) '
      'from log.%2$I as logged cross join lateral ('
      '  select count(*)::double precision as numbers, min(point) as low, max(point) as high, '
      '    sum(point) as total, sum(point * point) as squares '
      '  from unnest(logged.%1$I%3$s::double precision[]) as point where point <> ''NaN'''
      ') as one '
      'where logged."time" >= $3 and logged."time" < $4 '
      'group by bin order by bin',
      place.column_name, place.table_name, case place.type when 'bit[]' then '::integer[]' end
    ) using width, from_time, greatest(from_time, place.begins), least(to_time, place.ends);
  end loop;
  if not known then
    raise exception 'there is no signal ''%''', name
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
end
$$;

comment on function ringlog.get_waveform_trend(text, timestamptz, timestamptz, integer) is
$$A waveform from from_time on and before to_time in at most so many bins of one length, counted from from_time, oldest
first: how many waveforms there were, the least and the greatest of all their points, the points' mean and the root of
their mean square, the fewest and the most points of a waveform, and how many rows had none. Points that are NaN do not
count; a bin without rows is left out. It is made of the rows themselves. Left out: the last day, 1000 bins.
Errors: a signal that never was (42704), one that is no waveform of numbers (42804), bounds that are not in order or
points that are not from 1 to 1000000 (22023).$$;

revoke all on function ringlog.get_waveform_trend(text, timestamptz, timestamptz, integer) from public;
grant execute on function ringlog.get_waveform_trend(text, timestamptz, timestamptz, integer) to daq_reader;
