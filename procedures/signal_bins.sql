-- as it was called before
drop function if exists ringlog.signal_bins(text, timestamptz, timestamptz, interval, timestamptz);

create or replace function ringlog.signal_bins(
  names text[],
  from_time timestamptz,
  to_time timestamptz,
  width interval,
  origin timestamptz,
  with_squares boolean default false
)
returns table (
  signal text,
  "time" timestamptz,
  n bigint,
  min double precision,
  max double precision,
  mean double precision,
  first double precision,
  last double precision,
  nans bigint,
  nulls bigint,
  squares double precision
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  place record;
  part record;
  seconds integer;
  known text[];
  unknown text;
  bin_of_row text;
  bin_of_span text;
  shown text := 'bin';
  list text;
  -- parts of summaries: each its level, first span and the one after the last
  bins text;
  spans text;
  sources text;
  query text;
  squares_of_block constant text :=
    case when with_squares then 'unnest(block.squares)' else 'null::double precision' end;
  squares_of_bin constant text :=
    case
      -- PostgreSQL has an error for a square that is less than double precision has
      when with_squares then
        'sum(squares + case when abs(mean - bin_mean) > 1e-150 then n * (mean - bin_mean) ^ 2 else 0 * mean end)'
      else 'null::double precision'
    end;
  mean_of_bin constant text := case
    when with_squares then 'sum(n * mean) over of_bin / nullif(sum(n) over of_bin, 0)'
    else 'null::double precision'
  end;
  of_parts constant text :=
    'select column_.place, part.level, span.number, span.n, nullif(span.min, ''NaN'')::double precision as min, '
    '  nullif(span.max, ''NaN'')::double precision as max, nullif(span.mean, ''NaN'') as mean, '
    '  nullif(span.first, ''NaN'')::double precision as first, '
    '  nullif(span.last, ''NaN'')::double precision as last, '
    '  coalesce(span.nans, 0) as nans, coalesce(span.nulls, 0) as nulls, span.squares '
    'from unnest($2) with ordinality as column_ (name, place) cross join (values %1$s) as part (level, first, past) '
    'cross join lateral ('
    '  select block.number + generate_series(0, cardinality(block.n) - 1) as number, '
    '    unnest(block.n) as n, unnest(block.min) as min, unnest(block.max) as max, unnest(block.mean) as mean, '
    '    unnest(block.first) as first, unnest(block.last) as last, '
    '    unnest(block.nans) as nans, unnest(block.nulls) as nulls, %3$s as squares '
    '  from ('
    '    select *, date_part(''epoch'', summary.begins)::bigint / part.level as number '
    '    from summary.%2$I as summary '
    '    where summary.level = part.level and summary.column_name = column_.name '
    -- no block is longer than 72 spans
    '      and summary.begins > to_timestamp((part.first - 72) * part.level::double precision) '
    '      and summary.begins < to_timestamp(part.past * part.level::double precision) '
    '    offset 0'
    '  ) as block'
    ') as span where span.number >= part.first and span.number < part.past '
    '  and (span.n > 0 or span.nans > 0 or span.nulls > 0)';
begin
  if width <= interval '0' or not (isfinite(from_time) and isfinite(to_time)) then
    raise exception 'a bin needs a length and bounds that are finite' using errcode = 'invalid_parameter_value';
  end if;
  -- bins of whole seconds since 1970 may be made of summaries
  if origin = 'epoch' and extract(epoch from width) % 1 = 0 and width < interval '20000 days' then
    seconds := extract(epoch from width);
  end if;
  bin_of_row := format('date_bin(%L, logged."time", %L)', width, origin);
  if origin = from_time and from_time + width >= to_time then
    -- one bin has any spans
    seconds := 0;
    bin_of_row := '0::bigint';
    bin_of_span := '0::bigint';
    shown := format('%L::timestamptz', from_time);
  elsif seconds is not null then
    bin_of_span := format('number * level / %s', seconds);
    bin_of_row := format('(date_part(''epoch'', %s) / %s)::bigint', bin_of_row, seconds);
    shown := format('to_timestamp(bin * %s::double precision)', seconds);
  end if;

  for place in
    select found.table_name, found.begins, found.ends,
      -- numbers of so many digits have no summaries
      found.type like 'numeric%' as is_numeric,
      array_agg(found.signal order by place) as signals,
      array_agg(found.column_name order by place) as columns,
      array_agg(found.scalar order by place) as scalars,
      -- as the summaries call them
      array_agg(concat_ws('.', found.column_name, found.scalar) order by place) as names,
      array_agg(found.type order by place) as types
    from ringlog.trend_places(names) as found
    cross join lateral array_position(names, found.signal) as place
    group by found.table_name, found.begins, found.ends, is_numeric
    order by found.begins, found.table_name
  loop
    known := known || place.signals;
    for i in 1 .. cardinality(place.signals) loop
      continue when place.scalars[i] is not null;
      if place.types[i] like '%[]' then
        raise exception 'signal ''%'' is a waveform (%)', place.signals[i], place.types[i]
          using errcode = 'datatype_mismatch', hint = 'Call get_waveforms.' || case
            when place.types[i] like 'varchar%' then ''
            else format(' For a trend call get_waveform_trend, or ask for %s.mean.', place.signals[i])
          end;
      end if;
      if place.types[i] like 'varchar%' or place.types[i] in ('text', 'datetime') then
        raise exception 'signal ''%'' is % (%), not a number', place.signals[i],
          case place.types[i] when 'datetime' then 'a time' else 'text' end, place.types[i]
          using errcode = 'datatype_mismatch', hint = format('Call get_%s_range.', place.table_name);
      end if;
    end loop;
    bins := null;
    spans := null;
    sources := null;
    query := null;
    for part in
      select *
      from ringlog.summary_parts(
        place.table_name,
        greatest(from_time, place.begins),
        least(to_time, place.ends),
        coalesce(seconds, 1)
      )
      where not place.is_numeric
      union all
      select 0, greatest(from_time, place.begins), least(to_time, place.ends)
      where place.is_numeric and greatest(from_time, place.begins) < least(to_time, place.ends)
    loop
      if part.level = 0 then
        perform ringlog.demand_online(place.table_name, part.begins, part.ends);
        -- with the times in it: partitions outside are not looked at
        sources := concat_ws(' union all ', sources, format(
          'select place, bin, at, case when value <> ''NaN'' then 1 else 0 end, nullif(value, ''NaN''), '
          'nullif(value, ''NaN''), nullif(value, ''NaN''), nullif(value, ''NaN''), nullif(value, ''NaN''), '
          'case when value = ''NaN'' then 1 else 0 end, case when value is null then 1 else 0 end, 0.0 '
          'from ('
          '  select generate_series(1, cardinality($2)) as place, %s as bin, logged."time" as at, '
          '    unnest(array[%s]) as value '
          '  from log.%I as logged %s where logged."time" >= %L and logged."time" < %L'
          ') as value',
          bin_of_row,
          (
            select string_agg(
              case
                when scalar is null then
                  format('logged.%I%s::double precision', name, case type when 'bit' then '::integer' end)
                else format('%I.%I', name || '.', scalar)
              end,
              ', ' order by number
            )
            from unnest(place.columns, place.types, place.scalars)
              with ordinality as column_ (name, type, scalar, number)
          ),
          place.table_name,
          (
            -- no column has a dot in its name
            select string_agg(distinct format(
              'cross join lateral ringlog.waveform_scalars(logged.%I%s::double precision[]) as %I',
              name, case type when 'bit[]' then '::integer[]' end, name || '.'
            ), ' ')
            from unnest(place.columns, place.types, place.scalars) as column_ (name, type, scalar)
            where scalar is not null
          ),
          part.begins, part.ends
        ));
        continue;
      end if;
      list := format(
        '(%s, %s::bigint, %s::bigint)', part.level, extract(epoch from part.begins)::bigint / part.level,
        extract(epoch from part.ends)::bigint / part.level
      );
      if part.level = seconds then
        bins := concat_ws(', ', bins, list);
      else
        spans := concat_ws(', ', spans, list);
      end if;
    end loop;
    if spans is not null then
      sources := concat_ws(' union all ', sources, format(
        'select place, %s, to_timestamp(number * level::double precision), '
        'n, min, max, mean, first, last, nans, nulls, squares from (%s) as span',
        bin_of_span, format(of_parts, spans, place.table_name, squares_of_block)
      ));
    end if;
    if sources is not null then
      query := format(
        'select place, %s as "time", sum(n)::bigint as n, '
        'min(min), max(max), sum(n * mean) / nullif(sum(n), 0), '
        '(array_agg(first) filter (where n > 0))[1], (array_agg(last) filter (where n > 0))[count(mean)], '
        'sum(nans)::bigint, sum(nulls)::bigint, %s '
        'from ('
        '  select *, %s as bin_mean '
        '  from (%s) as source (place, bin, at, n, min, max, mean, first, last, nans, nulls, squares) '
        '  window of_bin as (partition by place, bin) '
        -- the arrays of first and last keep this order
        '  order by place, bin, at'
        ') as source group by place, bin',
        shown, squares_of_bin, mean_of_bin, sources
      );
    end if;
    if bins is not null then
      -- bins of one span each
      query := concat_ws(' union all ', query, format(
        'select place, to_timestamp(number * level::double precision) as "time", n::bigint, '
        'min, max, mean, first, last, nans::bigint, nulls::bigint, squares from (%s) as span',
        format(of_parts, bins, place.table_name, squares_of_block)
      ));
    end if;
    if query is not null then
      return query execute format(
        'select ($1)[place], "time", n, min, max, mean, first, last, nans, nulls, squares from (%s) '
        'as bin (place, "time", n, min, max, mean, first, last, nans, nulls, squares) order by place, "time"',
        query
      ) using place.signals, place.names;
    end if;
  end loop;

  select name into unknown from unnest(names) as name where name <> all (coalesce(known, '{}')) limit 1;
  if found then
    raise exception 'there is no signal ''%''', unknown
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
end
$$;

comment on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) is
$$What the log has of signals from from_time on and before to_time, in bins of this width counted from origin:
the number, the least, the greatest, the mean, the first and the last of its values, and how many rows had NaN or
no reading, which do not count for the others. Bins without rows are left out; a bin in which a signal moved to
another column comes twice, each with its own rows. A scalar of a waveform is a signal here (trend_places). Bins of whole seconds counted from 1970 are made of summaries
where they can be, and so is one bin that has all. `squares` is the sum of the squared distances from the mean, null
unless it is asked for.$$;

revoke all on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) from public;
grant execute on function ringlog.signal_bins(text[], timestamptz, timestamptz, interval, timestamptz, boolean) to daq_reader;
