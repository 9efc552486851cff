create or replace function ringlog.condition_spans(
  condition text, from_time timestamptz, to_time timestamptz, gap double precision default null
) returns tstzmultirange
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  term record;
  part record;
  kind text;
  until timestamptz;
  made record;
  -- the results that wait for an operator, the last one first
  held tstzmultirange[] := '{}';
  failed tstzmultirange[] := '{}';
begin
  if from_time < to_time is not true or not (isfinite(from_time) and isfinite(to_time)) then
    raise exception 'from_time (%) must be before to_time (%)', from_time, to_time using errcode = 'invalid_parameter_value';
  end if;
  if gap is not null and (gap >= 1e-6 and gap < 1e10) is not true then
    raise exception 'gap (%) must be seconds above 0', gap using errcode = 'invalid_parameter_value';
  end if;
  until := least(to_time, now());
  if condition is null then
    return tstzmultirange(tstzrange(from_time, greatest(from_time, until)));
  end if;
  -- every name and value is checked before rows are read
  for term in select * from ringlog.condition_steps(condition) as known where known.step = 'compare' loop
    select location.type into kind from ringlog.trend_places(array[term.signal]) as location order by location.ends desc limit 1;
    if not found then
      perform ringlog.demand_here(array(select known.signal from ringlog.condition_steps(condition) as known where known.step = 'compare'));
      raise exception 'condition, character %: there is no signal ''%''', term.place, term.signal
        using errcode = 'undefined_object', hint = 'find_signals lists them.';
    elsif kind like '%[]' or kind = 'datetime' then
      raise exception 'condition, character %: signal ''%'' is %, not a number or a text', term.place, term.signal, kind
        using errcode = 'datatype_mismatch', hint = case when kind like '%[]' then format('Compare %s.mean.', term.signal) end;
    elsif (kind like 'varchar%' or kind = 'text') and term.word is null then
      raise exception 'condition, character %: signal ''%'' is a text: compare it with one, as = ''on''', term.place, term.signal
        using errcode = 'datatype_mismatch';
    elsif term.word is not null and not (kind like 'varchar%' or kind = 'text') and not exists (
      select from ringlog.signal as known, json_each_text(known.states::json) as state
      where known.signal = term.signal and state.value = term.word
    ) then
      raise exception 'condition, character %: signal ''%'' has no state ''%''', term.place, term.signal, term.word
        using errcode = 'invalid_parameter_value';
    end if;
  end loop;
  if from_time >= until then
    return '{}';
  end if;

  for term in select * from ringlog.condition_steps(condition) loop
    case term.step
      when 'compare' then
        held := array['{}'::tstzmultirange] || held;
        failed := array['{}'::tstzmultirange] || failed;
        for part in
          -- the numbers of a state's name, which may have been others in former times
          select of_time.numbers, range_agg(tstzrange(of_time.since, of_time.until)) as span, max(of_time.ended) as ended
          from (
            select
              case
                when term.word is null then array[term.number]
                when not (known.type like 'varchar%' or known.type = 'text') then array(
                  select state.key::double precision from json_each_text(known.states::json) as state where state.value = term.word
                )
              end as numbers,
              case when row_number() over by_time = 1 then '-infinity' else known.valid_from end as since,
              coalesce(lead(known.valid_from) over by_time, 'infinity') as until,
              coalesce(max(coalesce(known.valid_to, 'infinity')) over (), 'infinity') as ended
            from ringlog.signal as known
            where known.signal = coalesce(
              (select each.signal from ringlog.signal as each where each.signal = term.signal limit 1),
              regexp_replace(term.signal, '\.(min|max|mean|rms|length)$', '')
            )
            window by_time as (order by known.valid_from)
          ) as of_time
          group by of_time.numbers
        loop
          continue when from_time >= least(until, part.ended);
          made := ringlog.comparison_spans(
            term.signal, term.operator, part.numbers, case when part.numbers is null then term.word end,
            from_time, least(until, part.ended), make_interval(secs => gap)
          );
          held[1] := held[1] + made.holds * part.span;
          failed[1] := failed[1] + made.fails * part.span;
        end loop;
      when 'not' then
        made := row (failed[1], held[1]);
        held[1] := failed[1];
        failed[1] := made.f2;
      when 'and' then
        held := array[held[2] * held[1]] || held[3:];
        failed := array[failed[2] + failed[1]] || failed[3:];
      else
        held := array[held[2] + held[1]] || held[3:];
        failed := array[failed[2] * failed[1]] || failed[3:];
    end case;
  end loop;
  return held[1];
end
$$;
comment on function ringlog.condition_spans is
$$The times from from_time (inclusive) to to_time (exclusive), or now, when a condition holds (condition_steps; null: always). A value lasts until
the signal's next row, until it is `gap` seconds old, or until the signal is retired. Where a signal has no value (before its first
row, NULL, NaN, after the gap) a comparison is neither true nor false, and so are conditions that depend on it: these times are left
out. Errors: a signal that never existed (42704), a waveform, or a text compared with a number (42804), a name that is no state of
the signal (22023), a text that is no condition (42601).$$;
grant execute on function ringlog.condition_spans to daq_reader, daq_table_reader;
