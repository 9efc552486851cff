create or replace function ringlog.comparison_spans(
  signal text,
  operator text,
  numbers double precision[],
  word text,
  from_time timestamptz,
  to_time timestamptz,
  gap interval,
  out holds tstzmultirange,
  out fails tstzmultirange
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  asked constant tstzmultirange := tstzmultirange(tstzrange(from_time, to_time));
  -- of > and >=, and of <>, the opposites are evaluated
  base constant text := case operator when '<>' then '=' when '>=' then '<' when '>' then '<=' else operator end;
  truth constant text := case when word is not null then '%1$s = $4' when base = '=' then '%1$s = any ($5)' else '%1$s ' || base || ' $5[1]' end;
  undecided tstzmultirange := asked;
  place record;
  level integer;
  former integer := 2147483647;
  decided record;
  value text;
  sources text;
  starts timestamptz[];
  ends timestamptz[];
  newest timestamptz;
  newest_truth boolean;
  since timestamptz;
begin
  holds := '{}';
  fails := '{}';
  for level in
    select distinct each from ringlog.trend_places(array[signal]) as found
    join ringlog.summarised as known on known.table_name = found.table_name, unnest(known.levels) as each
    where word is null order by each desc
  loop
    -- distances of rows in a bin and to the next one are shorter than two bins; a few bins decide nothing
    continue when former % level > 0 and former < 2147483647 or former < 4 * level
      or 2 * level > extract(epoch from gap) or 4 * level > extract(epoch from to_time - from_time);
    former := level;
    exit when isempty(undecided);
    execute format(
      $query$
      with bin as (
        select each.*, part.number, $6[part.number] as opens, $7[part.number] as closes,
          case when each.nans > 0 or each.nulls > 0 or each.n = 0 then null else %s end as whole,
          case when each.nans > 0 or each.nulls > 0 then null else %s end as ending
        from (
          select greatest(found."time", $2) as begins, found.*
          from ringlog.bins_within(array[$1], $2, $3, %L, 'epoch', false, $8) as found
        ) as each
        cross join lateral width_bucket(each.begins, $6) as part (number)
      ), neighbours as (
        select bin.*, lag(begins) over by_time as former, lag(ending) over by_time as before, lead(begins) over by_time as next
        from bin window by_time as (partition by number order by begins)
      ), piece as (
        select whole, tstzrange(coalesce(case when former is null then opens end, begins), coalesce(next, closes)) as span
        from neighbours
        where whole = case
            when former is not null then before
            when $9 @> opens - interval '1 microsecond' then true
            when $10 @> opens - interval '1 microsecond' then false
          end
          and ($11 is null or (
            (former is null or begins + %3$L - former <= $11)
            and coalesce(next + %3$L, closes) - begins <= $11
          ))
      )
      select coalesce(range_agg(span) filter (where whole), '{}') as holds,
        coalesce(range_agg(span) filter (where not whole), '{}') as fails
      from piece
      $query$,
      case base
        when '=' then
          'case when min = max then min = any ($5) when not exists (select from unnest($5) as x where x between min and max) then false end'
        when '<' then 'case when max < $5[1] then true when min >= $5[1] then false end'
        else 'case when max <= $5[1] then true when min > $5[1] then false end'
      end,
      format(truth, 'last'), make_interval(secs => level)
    )
    into decided
    using signal, from_time, to_time, word, numbers,
      array(select lower(part) from unnest(undecided) as part), array(select upper(part) from unnest(undecided) as part),
      undecided, holds, fails, gap;
    holds := holds + decided.holds;
    fails := fails + decided.fails;
    undecided := undecided - decided.holds - decided.fails;
  end loop;

  -- the rest: rows, and the state before each part, which lasts until its first row
  for place in
    select found.*, known.is_of_samples, row_number() over (order by found.begins) as number
    from ringlog.trend_places(array[signal]) as found
    join ringlog.every_table as known on known.table_name = found.table_name
    where found.begins < to_time
    order by found.begins desc
  loop
    value := case
      when place.scalar is not null then format(
        '(select scalars.%I from ringlog.waveform_scalars(logged.%I%s::double precision[]) as scalars)',
        place.scalar, case when place.is_of_samples then 'value' else place.column_name end,
        case place.type when 'bit[]' then '::integer[]' end
      )
      else format(
        case when word is not null then 'logged.%I' else 'nullif(logged.%I%s::double precision, ''NaN'')' end,
        case when place.is_of_samples then 'value' else place.column_name end, case place.type when 'bit' then '::integer' end
      )
    end;
    -- usually a row is near, and no plan over all weeks of the log is needed
    foreach since in array array[from_time - interval '1 day', '-infinity'] loop
      exit when newest is not null or place.begins >= from_time;
      since := greatest(since, place.begins, from_time - gap);
      if place.is_of_samples then
        execute format(
          'select logged."time", %s from ringlog.%I(least($1, $2) - interval ''1 microsecond'', %s) as logged where logged."time" >= $3',
          format(truth, value), 'get_' || place.table_name || '_at', place.column_name
        ) into newest, newest_truth using from_time, place.ends, since, word, numbers;
      else
        perform ringlog.reads_archive(place.table_name, since, from_time);
        execute format(
          'select logged."time", %s from log.%I as logged where logged."time" < least($1, $2) and logged."time" >= $3 '
          'order by logged."time" desc, logged.seq_no desc limit 1',
          format(truth, value), place.table_name
        ) into newest, newest_truth using from_time, place.ends, since, word, numbers;
      end if;
    end loop;
    sources := concat_ws(' union all ', sources, format(
      'select part.number, %s as place, logged."time", logged.%s as row, %s as truth '
      'from unnest($1, $2) with ordinality as part (opens, closes, number) cross join lateral (%s) as logged',
      place.number, case when place.is_of_samples then 'nanoseconds' else 'seq_no' end, format(truth, value),
      case when place.is_of_samples then format(
        'select * from ringlog.%I(null, greatest(part.opens, %L), least(part.closes, %L), null, %s)',
        'get_' || place.table_name, place.begins, place.ends, place.column_name
      ) else format(
        'select * from log.%I as each where each."time" >= greatest(part.opens, %L) and each."time" < least(part.closes, %L)',
        place.table_name, place.begins, place.ends
      ) end
    ));
    if not place.is_of_samples then
      perform ringlog.reads_archive(place.table_name, lower(part), upper(part)) from unnest(undecided) as part;
    end if;
  end loop;
  if not isempty(undecided) and sources is not null then
    starts := array(select lower(part) from unnest(undecided) as part);
    ends := array(select upper(part) from unnest(undecided) as part);
    execute format(
      $query$
      select coalesce(range_agg(span) filter (where truth), '{}') as holds,
        coalesce(range_agg(span) filter (where not truth), '{}') as fails
      from (
        select state.truth, tstzrange(
          greatest(state."time", $1[state.number]),
          least(lead(state."time") over by_time, $2[state.number], case when state.place >= 0 then state."time" + $3 end)
        ) as span
        from (
          %s
          union all
          select part.number, -1, part.opens, 0, case when $6 @> before then true when $7 @> before then false end
          from unnest($1) with ordinality as part (opens, number), lateral (select part.opens - interval '1 microsecond') as moment (before)
          where part.opens > $8
          union all
          select 1, 0, $9, 0, $10 where $9 > $8 - $3 or $3 is null and $9 is not null
        ) as state
        window by_time as (partition by state.number order by state."time", state.place, state.row)
      ) as state
      where not isempty(span)
      $query$,
      sources
    )
    into decided
    using starts, ends, gap, word, numbers, holds, fails, from_time, newest, newest_truth;
    holds := holds + decided.holds;
    fails := fails + decided.fails;
  end if;
  if base <> operator then
    undecided := holds;
    holds := fails;
    fails := undecided;
  end if;
end
$$;

comment on function ringlog.comparison_spans is
$$When a comparison holds and when it fails, from from_time (inclusive) to to_time (exclusive): `signal` with any of `numbers`, or
with `word`. A value lasts until the next row or for `gap`, if that is shorter. It reads summaries where minimum and maximum of a
span decide, and rows elsewhere. Errors: those of get_trend.$$;

grant execute on function ringlog.comparison_spans to daq_reader, daq_table_reader;
