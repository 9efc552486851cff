create or replace function ringlog.bins_within(
  names text[], from_time timestamptz, to_time timestamptz, width interval, origin timestamptz, with_squares boolean,
  within tstzmultirange
) returns table (
  signal text, "time" timestamptz, n bigint, min double precision, max double precision, mean double precision,
  first double precision, last double precision, nans bigint, nulls bigint, squares double precision
)
language plpgsql stable set search_path = pg_catalog, pg_temp
-- PostgreSQL would plan its queries at each call, which takes longer than running them
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  location record;
  part record;
  -- the rows of a part, or of many parts, each of which looks its own up
  logged text;
  seconds integer;
  known text[]; unknown text;
  query text; queries text[] := '{}';
  -- whether a signal may have a bin in two columns
  have_moved boolean := false;
  bin_of_row text; bin_of_span text; shown text := 'bin';
  -- parts of summaries (level, first span, the span after the last): those whose spans are bins, those whose spans are
  -- gathered into bins, and all parts if some columns are younger than the table
  bins text;
  spans text;
  lacking text;
  -- bins of few spans each
  groups text;
  -- the spans to gather into bins
  sources text;
  -- number of parts that are not gathered, and the bounds of the last
  whole_parts integer; whole_begins timestamptz; whole_ends timestamptz;
  shortest integer;
  eldest text;
  -- the columns, joined to a query of each, and a signal by its position
  of_columns text;
  signal_of text;
  -- whether no bin is in two parts
  are_apart boolean;
  first bigint; past bigint; first_whole bigint; past_whole bigint;
  factor integer;
  length integer;
  squares_of_block constant text :=
    case when with_squares then 'unnest(block.squares)' else 'null::double precision' end;
  squares_of_rows constant text :=
    case when with_squares then 'var_pop(number_%1$s) * count(number_%1$s)' else 'null::double precision' end;
  numbers_of_rows constant text := '(array_agg(number_%1$s) filter (where number_%1$s is not null))';
  -- the parts of bins (position, bin, at, figures) as bins; the arrays of first and last keep this order
  merged constant text :=
    'select position, %s, sum(n)::bigint, min(min), max(max), '
    '  case when count(*) = 1 then min(mean) else sum(n * mean) / nullif(sum(n), 0) end, '
    '  (array_agg(first) filter (where n > 0))[1], '
    '  (array_agg(last) filter (where n > 0))[count(*) filter (where n > 0)], sum(nans)::bigint, sum(nulls)::bigint, '
    || case
      -- PostgreSQL raises an error for a square that underflows
      when with_squares then
        'sum(squares + case when abs(mean - bin_mean) > 1e-150 then n * (mean - bin_mean) ^ 2 else 0 * mean end) '
        'from (select *, sum(n * mean) over of_bin / nullif(sum(n) over of_bin, 0) as bin_mean from (%s) as %s '
        'window of_bin as (partition by position, bin)'
      else 'null::double precision from (select * from (%s) as %s'
    end || ' order by position, bin, at) as part group by position, bin';
  of_parts_of_bins constant text :=
    'source (position, bin, at, n, min, max, mean, first, last, nans, nulls, squares)';
  figures constant text := '"time", n, min, max, mean, first, last, nans, nulls, squares';
  -- arrays, one element a signal
  of_rows constant text :=
    'select bin, min(at) as at, array[%s] as n, array[%s] as min, array[%s] as max, array[%s] as mean, '
    '  array[%s] as first, array[%s] as last, array[%s] as nans, array[%s] as nulls, array[%s] as squares '
    'from ('
    '  select %s as bin, logged."time" as at, %s from %s as logged %s '
    '  where logged."time" >= %L and logged."time" < %L '
    -- the arrays of first and last keep this order
    '  order by bin, logged."time", logged.seq_no'
    ') as logged group by bin';
  blocks constant text :=
    'select *, date_part(''epoch'', summary.begins)::bigint / part.level as number '
    'from summary.%I as summary '
    'where summary.level = part.level and summary.column_name = column_.name '
    -- no block is longer than 72 spans
    '  and summary.begins > to_timestamp((part.first - 72) * part.level::double precision) '
    '  and summary.begins < to_timestamp(part.past * part.level::double precision) '
    'order by summary.begins offset 0';
  of_parts constant text :=
    'select part.level, span.number, span.n, nullif(span.min, ''NaN'')::double precision as min, '
    '  nullif(span.max, ''NaN'')::double precision as max, '
    -- the mean of values with both infinities is NaN
    '  case when span.n > 0 then span.mean end as mean, '
    '  nullif(span.first, ''NaN'')::double precision as first, '
    '  nullif(span.last, ''NaN'')::double precision as last, '
    '  coalesce(span.nans, 0) as nans, coalesce(span.nulls, 0) as nulls, '
    '  case when span.n > 0 then span.squares end as squares '
    'from (values %1$s) as part (level, first, past) '
    'cross join lateral ('
    '  select block.number + generate_series(0, cardinality(block.n) - 1) as number, '
    '    unnest(block.n) as n, unnest(block.min) as min, unnest(block.max) as max, unnest(block.mean) as mean, '
    '    unnest(block.first) as first, unnest(block.last) as last, '
    '    unnest(block.nans) as nans, unnest(block.nulls) as nulls, %3$s as squares '
    '  from (%2$s) as block'
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

  for location in
    select found.table_name, found.begins, found.ends,
      found.type like 'numeric%' as is_numeric,
      known.is_of_samples,
      array_agg(found.signal order by position) as signals,
      array_agg(found.column_name order by position) as columns,
      array_agg(found.scalar order by position) as scalars,
      -- the columns' names in the summaries
      array_agg(concat_ws('.', found.column_name, found.scalar) order by position) as names,
      array_agg(found.type order by position) as types
    from ringlog.trend_places(names) as found
    cross join lateral array_position(names, found.signal) as position
    join ringlog.every_table as known on known.table_name = found.table_name
    -- each signal of samples has times of its own
    group by found.table_name, found.begins, found.ends, is_numeric, known.is_of_samples,
      case when known.is_of_samples then found.column_name end
    order by found.begins, found.table_name
  loop
    known := known || location.signals;
    have_moved := have_moved or location.begins > from_time and location.begins < to_time;
    of_columns := format('unnest(%L::text[]) with ordinality as column_ (name, position) cross join lateral', location.names);
    signal_of := format('(%L::text[])', location.signals);
    for i in 1 .. cardinality(location.signals) loop
      continue when location.scalars[i] is not null;
      if location.types[i] like '%[]' then
        raise exception 'signal ''%'' is a waveform (%)', location.signals[i], location.types[i]
          using errcode = 'datatype_mismatch', hint = 'Call get_waveforms.' || case
            when location.types[i] like 'varchar%' then ''
            else format(' For a trend call get_waveform_trend, or request %s.mean.', location.signals[i])
          end;
      end if;
      if location.types[i] like 'varchar%' or location.types[i] in ('text', 'datetime') then
        raise exception 'signal ''%'' is % (%), not a number', location.signals[i],
          case location.types[i] when 'datetime' then 'a time' else 'text' end, location.types[i]
          using errcode = 'datatype_mismatch', hint = format(
            case when location.is_of_samples then 'Call get_%s.' else 'Call get_%s_range.' end, location.table_name
          );
      end if;
    end loop;
    bins := null; spans := null; lacking := null; groups := null; sources := null; query := null; shortest := null;
    are_apart := true;
    whole_parts := 0;
    for part in
      with part as materialized (
        select part.*, count(*) filter (where part.level = 0) over () > 8 as are_many
        from unnest(within * tstzmultirange(
          tstzrange(greatest(from_time, location.begins), greatest(from_time, location.begins, least(to_time, location.ends)))
        )) as span
        cross join lateral ringlog.summary_parts(
          location.table_name,
          lower(span),
          upper(span),
          -- a numeric has no summaries
          case when location.is_numeric then null else coalesce(seconds, 1) end,
          case when location.is_of_samples then location.columns[1] end
        ) as part
      )
      select level, begins, ends, array[begins] as starts, array[ends] as stops from part where level > 0 or not are_many
      union all
      select 0, min(begins), max(ends), array_agg(begins), array_agg(ends) from part where level = 0 and are_many having count(*) > 0
    loop
      are_apart := are_apart and cardinality(part.starts) = 1 and (
        part.begins = greatest(from_time, location.begins) or seconds > 0 and extract(epoch from part.begins) % seconds = 0
      );
      if part.level = 0 then
        if location.is_of_samples then
          perform ringlog.reads_archive(location.table_name, each.begins, each.ends)
          from unnest(part.starts, part.stops) as each (begins, ends);
        else
          perform ringlog.demand_online(location.table_name, each.begins, each.ends)
          from unnest(part.starts, part.stops) as each (begins, ends);
        end if;
        logged := format(
          case
            when location.is_of_samples then
              '(select each."time", each.nanoseconds as seq_no, each.value as %2$I from ringlog.%3$I(null, %4$s, %5$s, null, %2$s) as each offset 0)'
            when cardinality(part.starts) = 1 then 'weeks.%1$I'
            else '(select * from weeks.%1$I as each where each."time" >= %4$s and each."time" < %5$s offset 0)'
          end,
          location.table_name, location.columns[1], 'get_' || location.table_name,
          case when cardinality(part.starts) = 1 then quote_literal(part.begins) else 'part.begins' end,
          case when cardinality(part.starts) = 1 then quote_literal(part.ends) else 'part.ends' end
        );
        if cardinality(part.starts) > 1 then
          logged := format(
            '(select rows.* from unnest(%L::timestamptz[], %L::timestamptz[]) as part (begins, ends) cross join lateral %s as rows)',
            part.starts, part.stops, logged
          );
        end if;
        -- times as constants: other partitions are not opened
        sources := concat_ws(' union all ', sources, (
          select format(
            case
              when cardinality(location.columns) = 1 then format(
                'select 1::bigint, bin, at, n, min, max, mean, first, last, nans, nulls, squares '
                'from (%s) as value',
                replace(of_rows, 'array[%s]', '%s')
              )
              else format(
                'select value.position, bin, at, value.n, value.min, value.max, value.mean, value.first, value.last, '
                '  value.nans, value.nulls, value.squares '
                'from (%s) as bin cross join lateral unnest('
                '  (select array_agg(position) from generate_series(1, ' || cardinality(location.columns) || ') as position), '
                '  n, min, max, mean, first, last, nans, nulls, squares'
                ') as value (position, n, min, max, mean, first, last, nans, nulls, squares)',
                of_rows
              )
            end,
            string_agg(format('count(number_%s)', number), ', ' order by number),
            string_agg(format('min(number_%s)', number), ', ' order by number),
            string_agg(format('max(number_%s)', number), ', ' order by number),
            string_agg(format('sum(number_%1$s) / nullif(count(number_%1$s), 0)', number), ', ' order by number),
            string_agg(format(numbers_of_rows || '[1]', number), ', ' order by number),
            string_agg(format(numbers_of_rows || '[count(number_%1$s)]', number), ', ' order by number),
            string_agg(format('count(value_%1$s) - count(number_%1$s)', number), ', ' order by number),
            string_agg(format('count(*) - count(value_%s)', number), ', ' order by number),
            string_agg(format(squares_of_rows, number), ', ' order by number),
            bin_of_row,
            string_agg(format('%1$s as value_%2$s, nullif(%1$s, ''NaN'') as number_%2$s', value, number), ', ' order by number),
            logged,
            -- no column has a dot in its name
            string_agg(distinct format(
              'cross join lateral ringlog.waveform_scalars(logged.%I%s::double precision[]) as %I',
              name, case type when 'bit[]' then '::integer[]' end, name || '.'
            ), ' ') filter (where scalar is not null),
            part.begins, part.ends
          )
          from unnest(location.columns, location.types, location.scalars)
            with ordinality as column_ (name, type, scalar, number)
          cross join lateral (
            select case
              when scalar is null then
                format('logged.%I%s::double precision', name, case type when 'bit' then '::integer' end)
              else format('%I.%I', name || '.', scalar)
            end
          ) as read (value)
        ));
        continue;
      end if;
      first := extract(epoch from part.begins)::bigint / part.level;
      past := extract(epoch from part.ends)::bigint / part.level;
      shortest := least(shortest, part.level);
      lacking := concat_ws(', ', lacking, format('(%s, %s::bigint, %s::bigint)', part.level, first, past));
      if part.level = seconds then
        bins := concat_ws(', ', bins, format('(%s, %s::bigint, %s::bigint)', part.level, first, past));
        whole_parts := whole_parts + 1;
        whole_begins := part.begins;
        whole_ends := part.ends;
        continue;
      end if;
      -- bins of few spans need no sorting but at both ends, which may be parts of bins; none lies in two blocks, whose
      -- lengths are those of ringlog.schema.relations.summaries
      length := case
        when part.level <= 60 then 60 when part.level <= 1200 then 72 when part.level = 86400 then 56 else 48
      end;
      factor := case
        when seconds % part.level = 0 and seconds / part.level between 2 and 6
          and length % (seconds / part.level) = 0 and not with_squares
        then seconds / part.level
      end;
      first_whole := (first + factor - 1) / factor * factor;
      past_whole := past / factor * factor;
      if first_whole < past_whole then
        whole_parts := whole_parts + 1;
        whole_begins := to_timestamp(first_whole * part.level::double precision);
        whole_ends := to_timestamp(past_whole * part.level::double precision);
        groups := concat_ws(' union all ', groups, (
          select format(
            'select to_timestamp(bin.number * %1$s::double precision), bin.n::bigint, '
            '  bin.min::double precision, bin.max::double precision, bin.sum / nullif(bin.n, 0), '
            '  bin.first::double precision, bin.last::double precision, '
            '  coalesce(bin.nans, 0)::bigint, coalesce(bin.nulls, 0)::bigint, null::double precision '
            'from ('
            '  select number + at as number, %5$s as n, '
            '    case when whole then least(%6$s) else least(%7$s) end as min, '
            '    case when whole then greatest(%8$s) else greatest(%9$s) end as max, '
            '    case when whole then %10$s else %11$s end as sum, '
            '    case when whole then first[at + 1] else coalesce(%12$s) end as first, '
            '    case when whole then last[at + %4$s] else coalesce(%13$s) end as last, '
            '    case when nans is not null then %14$s end as nans, '
            '    case when nulls is not null then %15$s end as nulls '
            '  from ('
            '    select *, generate_series(0, cardinality(n) - %4$s, %4$s) as at from ('
            -- without empty spans, whose numbers are NaN
            '      select date_part(''epoch'', summary.begins)::bigint / %1$s as number, 0 <> all(n) as whole, '
            '        n, min, max, mean, first, last, nans, nulls '
            '      from summary.%16$I as summary '
            '      where summary.level = %1$s and summary.column_name = column_.name '
            '        and summary.begins > to_timestamp((%2$s - %17$s) * %1$s::double precision) '
            '        and summary.begins < to_timestamp(%3$s * %1$s::double precision) '
            '      order by summary.begins offset 0'
            '    ) as block'
            '  ) as block where number + at >= %2$s and number + at < %3$s offset 0'
            ') as bin where bin.n > 0 or bin.nans > 0 or bin.nulls > 0',
            part.level, first_whole, past_whole, factor,
            string_agg(format('n[at + %s]', k), ' + ' order by k),
            string_agg(format('min[at + %s]', k), ', ' order by k),
            string_agg(format('nullif(min[at + %s], ''NaN'')', k), ', ' order by k),
            string_agg(format('max[at + %s]', k), ', ' order by k),
            string_agg(format('nullif(max[at + %s], ''NaN'')', k), ', ' order by k),
            string_agg(format('n[at + %1$s] * mean[at + %1$s]', k), ' + ' order by k),
            string_agg(format('case when n[at + %1$s] > 0 then n[at + %1$s] * mean[at + %1$s] else 0 end', k), ' + ' order by k),
            string_agg(format('nullif(first[at + %s], ''NaN'')', k), ', ' order by k),
            string_agg(format('nullif(last[at + %s], ''NaN'')', k), ', ' order by k desc),
            string_agg(format('nans[at + %s]', k), ' + ' order by k),
            string_agg(format('nulls[at + %s]', k), ' + ' order by k),
            location.table_name, length
          )
          from generate_series(1, factor) as k
        ));
      end if;
      -- the remainder: both ends
      select nullif(concat_ws(', ', spans, string_agg(format(
        '(%s, %s::bigint, %s::bigint)', part.level, rest.first, rest.past
      ), ', ')), '') into spans
      from (
        select first, past where first_whole < past_whole is not true
        union all
        select first, first_whole where first_whole < past_whole
        union all
        select past_whole, past where first_whole < past_whole
      ) as rest (first, past)
      where rest.first < rest.past;
    end loop;
    if spans is not null then
      sources := concat_ws(' union all ', sources, format(
        'select column_.position, %s, to_timestamp(number * level::double precision), '
        'n, min, max, mean, first, last, nans, nulls, squares from %s (%s) as span',
        bin_of_span,
        of_columns,
        format(of_parts, spans, format(blocks, location.table_name), squares_of_block)
      ));
    end if;
    eldest := null;
    if lacking is not null and not location.is_of_samples and exists (
      select from unnest(location.columns) as name
      where (
        select min(own.valid_from) from ringlog.signal as own
        where own.table_name = location.table_name and own.column_name = name
      ) > (select min(each.valid_from) from ringlog.signal as each where each.table_name = location.table_name)
    ) then
      -- a later column has no blocks of the time before; its rows are null there
      execute format(
        'select attname || scalar from pg_attribute cross join unnest(array['''', ''.length'']) as scalar '
        'cross join lateral (select min(begins) as begun from summary.%I where level = $1 and column_name = attname || scalar) '
        'where attrelid = %L::regclass and attnum > 0 and not attisdropped and begun is not null order by begun limit 1',
        location.table_name, format('weeks.%I', location.table_name)
      ) into eldest using shortest;
    end if;
    if eldest is not null then
      sources := concat_ws(' union all ', sources, format(
        'select column_.position, %s, to_timestamp(number * level::double precision), 0 as n, '
        '  null::double precision as min, null::double precision as max, null::double precision as mean, '
        '  null::double precision as first, null::double precision as last, 0 as nans, rows as nulls, '
        '  null::double precision as squares '
        'from %s ('
        '  select part.level, span.number, span.n + coalesce(span.nans, 0) + coalesce(span.nulls, 0) as rows '
        '  from (values %s) as part (level, first, past) '
        '  cross join lateral ('
        '    select block.number + generate_series(0, cardinality(block.n) - 1) as number, '
        '      unnest(block.n) as n, unnest(block.nans) as nans, unnest(block.nulls) as nulls '
        '    from (%s) as block where not exists ('
        '      select from summary.%I as own where own.level = block.level and own.column_name = column_.name '
        '        and own.begins = block.begins'
        '    )'
        '  ) as span where span.number >= part.first and span.number < part.past'
        ') as span where rows > 0',
        bin_of_span,
        of_columns,
        lacking,
        replace(format(blocks, location.table_name), 'column_.name', quote_literal(eldest)),
        location.table_name
      ));
      are_apart := false;
    end if;
    if sources is not null then
      query := case
        -- each of their rows is a bin
        when are_apart and spans is null and not with_squares then format(
          'select position, %s, n::bigint, min, max, mean, first, last, nans::bigint, nulls::bigint, squares from (%s) as %s',
          shown, sources, of_parts_of_bins
        )
        else format(merged, shown, sources, of_parts_of_bins)
      end;
    end if;
    if bins is not null then
      -- bins of one span each
      groups := concat_ws(' union all ', format(
        'select to_timestamp(number * level::double precision), n::bigint, '
        'min, max, mean, first, last, nans::bigint, nulls::bigint, squares from (%s) as span',
        format(of_parts, bins, format(blocks, location.table_name), squares_of_block)
      ), groups);
    end if;
    if whole_parts = 1 and query is null then
      query := format('select %s[column_.position], %s from %s (%s) as bin (%2$s)', signal_of, figures, of_columns, groups);
    elsif whole_parts = 1 and eldest is null and extract(epoch from
      -- each signal scans all gathered spans
      least(to_time, location.ends) - whole_ends + (whole_begins - greatest(from_time, location.begins))
    ) / seconds * cardinality(location.signals) ^ 2 < 100000 then
      -- it lies before and after the others, so all are in order
      query := format(
        'with gathered (position, %1$s) as materialized (%2$s order by 1, 2) '
        'select %7$s[column_.position], %1$s from %3$s ('
        '  select %1$s from gathered where gathered.position = column_.position and gathered."time" < %4$L '
        '  union all %6$s '
        '  union all select %1$s from gathered where gathered.position = column_.position and gathered."time" >= %5$L'
        ') as bin (%1$s)',
        figures, query, of_columns, whole_begins, whole_ends, groups, signal_of
      );
    elsif query is not null or groups is not null then
      query := format(
        'select %s[position], %s from (%s) as bin (position, %2$s) order by position, "time"',
        signal_of,
        figures,
        concat_ws(' union all ', query, case when groups is not null then
          format('select column_.position, bin.* from %s (%s) as bin', of_columns, groups)
        end)
      );
    end if;
    if query is not null then
      queries := queries || query;
    end if;
  end loop;

  select name into unknown from unnest(names) as name where name <> all (coalesce(known, '{}')) limit 1;
  if found then
    perform ringlog.demand_here(names);
    raise exception 'there is no signal ''%''', unknown
      using errcode = 'undefined_object', hint = 'find_signals lists them.';
  end if;
  if have_moved and cardinality(queries) > 1 then
    select array[format(
      'select (%L::text[])[position], %s from (%s) as bin (position, %2$s) order by position, "time"',
      names,
      figures,
      format(merged, 'bin', string_agg(format(
        'select array_position(%L::text[], signal), "time", %s, n, min, max, mean, first, last, nans, nulls, squares '
        'from (%s) as moved (signal, %s)',
        names, number, each, figures
      ), ' union all '), of_parts_of_bins)
    )] into queries
    from unnest(queries) with ordinality as found (each, number);
  end if;
  foreach query in array queries loop
    return query execute query;
  end loop;
end
$$;
comment on function ringlog.bins_within is
$$The values of signals in the log from from_time (inclusive) to to_time (exclusive), of those times that are `within`, in bins
of this width counted from origin: number, minimum, maximum, mean, first and last, and the numbers of rows with NaN and without a reading, which
the other figures omit. Bins without rows are omitted. A scalar of a waveform is a signal here (trend_places). Bins of
whole seconds counted from 1970 are made of summaries where possible, and so is a single bin for all. `squares` is the
sum of the squared distances from the mean, null without `with_squares`.$$;
grant execute on function ringlog.bins_within to daq_reader, daq_table_reader;
