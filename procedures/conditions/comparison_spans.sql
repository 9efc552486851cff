create or replace function ringlog.comparison_spans(
  name text, operator text, numbers double precision[], word text, from_time timestamptz, to_time timestamptz,
  gap interval, out holds tstzmultirange, out fails tstzmultirange
)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  -- the opposite is evaluated of > and >=, and of <>
  base constant text := case operator when '<>' then '=' when '>=' then '<' when '>' then '<=' else operator end;
  undecided tstzmultirange := tstzmultirange(tstzrange(from_time, to_time));
  opens timestamptz[];
  closes timestamptz[];
  level integer;
  longer integer;
  width interval;
  -- whole spans: archived weeks of tables of rows have no others
  first timestamptz;
  past timestamptz;
  -- where rows are close enough together for spans of any length
  dense constant tstzmultirange := case when gap is not null and word is null then ringlog.dense_spans(name, from_time, to_time, gap) end;
  decided record;
begin
  holds := '{}';
  fails := '{}';
  for level in
    select distinct each
    from ringlog.trend_places(array[name]) as location
    join ringlog.summarised as known on known.table_name = location.table_name
    cross join unnest(known.levels) as each
    where word is null
    order by each desc
  loop
    -- rows of a bin and of the next one are less than two bins apart; few bins decide little
    continue when longer % level > 0 or longer < 4 * level or (2 * level > extract(epoch from gap) and isempty(dense))
      or 4 * level > extract(epoch from to_time - from_time);
    exit when isempty(undecided);
    longer := level;
    width := make_interval(secs => level);
    first := date_bin(width, from_time - interval '1 microsecond', 'epoch') + width;
    past := date_bin(width, to_time, 'epoch');
    opens := array(select lower(part) from unnest(undecided) as part);
    closes := array(select upper(part) from unnest(undecided) as part);
    with bin as (
      select part.number as part, found."time" as begins,
        case
          when found.nans > 0 or found.nulls > 0 then null
          when base = '=' and found.min = found.max then found.min = any(numbers)
          when base = '=' and not exists (select from unnest(numbers) as each where each between found.min and found.max) then false
          when base = '<' and (found.max < numbers[1] or found.min >= numbers[1]) then found.max < numbers[1]
          when base = '<=' and (found.max <= numbers[1] or found.min > numbers[1]) then found.max <= numbers[1]
        end as of_all,
        case
          when found.nans > 0 or found.nulls > 0 then null
          when base = '=' then found.last = any(numbers)
          when base = '<' then found.last < numbers[1]
          else found.last <= numbers[1]
        end as of_last
      from ringlog.bins_within(
        array[name], first, past, width, 'epoch', false,
        -- a part takes as long as a hundred spans
        case when 100 * cardinality(opens) > extract(epoch from to_time - from_time) / level then '{(,)}' else undecided end
      ) as found
      cross join lateral width_bucket(found."time", opens) as part (number)
      where found."time" < closes[part.number]
    ), neighbour as (
      select *, lag(begins) over by_time as former, lag(of_last) over by_time as of_former, lead(begins) over by_time as next
      from bin
      window by_time as (partition by part order by begins)
    ), span as (
      select of_all, tstzrange(case when former is null then opens[part] else begins end, least(coalesce(next, closes[part]), past)) as time
      from neighbour
      where of_all = case
          when former is not null then of_former
          when holds @> opens[part] - interval '1 microsecond' then true
          when fails @> opens[part] - interval '1 microsecond' then false
        end
        and case
          when gap is null then true
          -- also as far outside as the spans of dense_spans, which may lie across both ends
          when 2 * width > gap then dense @> tstzrange(begins - gap / 2 - interval '1 us', least(coalesce(next, closes[part]), past) + gap / 2)
          else (former is null or begins + width - former <= gap) and coalesce(next + width, closes[part]) - begins <= gap
        end
    )
    select coalesce(range_agg(time) filter (where of_all), '{}') as holds,
      coalesce(range_agg(time) filter (where not of_all), '{}') as fails
    into decided
    from span;
    holds := holds + decided.holds;
    fails := fails + decided.fails;
    undecided := undecided - decided.holds - decided.fails;
  end loop;

  if not isempty(undecided) then
    select coalesce(range_agg(tstzrange(state.begins, state.ends)) filter (where state.truth), '{}') as holds,
      coalesce(range_agg(tstzrange(state.begins, state.ends)) filter (where not state.truth), '{}') as fails
    into decided
    from (
      select held.begins, held.ends, case
          when held.is_carried and holds @> held.begins - interval '1 microsecond' then true
          when held.is_carried and fails @> held.begins - interval '1 microsecond' then false
          when word is not null then held.word = word
          when base = '=' then held.number = any(numbers)
          when base = '<' then held.number < numbers[1]
          else held.number <= numbers[1]
        end as truth
      from ringlog.held_rows(name, undecided, gap) as held
    ) as state
    where state.begins < state.ends;
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
$$When a comparison of a signal with one of `numbers`, or with `word`, holds and when it fails, from from_time (inclusive) to
to_time (exclusive). It reads summaries where minimum and maximum of a span decide, and rows elsewhere; a value lasts as in
held_rows. Errors: those of get_trend.$$;
grant execute on function ringlog.comparison_spans to daq_reader, daq_table_reader;
