create or replace function ringlog.why_missing(
  signal text, from_time timestamptz default null, to_time timestamptz default null
) returns table (cause text, since timestamptz, until timestamptz, rows bigint, evidence text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  name text := signal;
  ends constant timestamptz := least(coalesce(to_time, now()), now());
  begins constant timestamptz := coalesce(from_time, ends - interval '1 day');
  asked constant tstzrange := case when begins <= ends then tstzrange(begins, ends) end;
  location record;
  piece record;
  stored tstzmultirange := '{}';
  kinds text[] := '{}';
  spans tstzrange[] := '{}';
  details text[] := '{}';
  locations text[] := '{}';
begin
  if asked is null or not (isfinite(begins) and isfinite(ends)) then
    raise exception 'why_missing: from_time (%) must be before to_time (%) and now, and finite', begins, ends
      using errcode = 'invalid_parameter_value';
  end if;
  if not exists (select from ringlog.signal as known where known.signal = name) then
    -- a waveform's scalar is missing where the waveform is
    name := regexp_replace(name, '\.(min|max|mean|rms|length)$', '');
    if not exists (select from ringlog.signal as known where known.signal = name and known.type like '%[]') then
      perform ringlog.demand_here(array[signal]);
      raise exception 'why_missing: there is no signal ''%''', signal
        using errcode = 'undefined_object', hint = 'find_signals lists them.';
    end if;
  end if;
  if not pg_has_role('daq_reader', 'usage') and exists (
    select from ringlog.signal as known
    where known.signal = name and known.table_name not in (select ringlog.readable_tables())
  ) then
    return query select 'no right', null::timestamptz, null::timestamptz, null::bigint,
      format('login %s may not read signal %s', current_user, signal);
    return;
  end if;

  for location in
    select found.table_name, found.column_name, known.is_of_samples,
      greatest(begins, found.begins) as begins, least(ends, found.ends) as ends
    from ringlog.signal_places(array[name]) as found
    join ringlog.every_table as known on known.table_name = found.table_name
    order by found.begins
  loop
    locations := locations || array[location.table_name, location.column_name];
    continue when location.begins >= location.ends;
    stored := stored + tstzmultirange(tstzrange(location.begins, location.ends));
    for piece in
      with cold as (
        select week.file, tstzrange(week.begins, week.ends) * tstzrange(location.begins, location.ends) as at
        from ringlog.cold_week as week
        where week.table_name = location.table_name and week.recalled_until is null and week.rows > 0
          and tstzrange(week.begins, week.ends) && tstzrange(location.begins, location.ends)
      )
      select cold.file, cold.at from cold
      union all
      select null, each.at
      from unnest(
        tstzmultirange(tstzrange(location.begins, location.ends)) - coalesce((select range_agg(cold.at) from cold), '{}')
      ) as each (at)
    loop
      begin
        perform ringlog.reads_archive(location.table_name, lower(piece.at), upper(piece.at));
        select kinds || array_agg(found.kind), spans || array_agg(found.at), details || array_agg(found.detail)
        into kinds, spans, details
        from (
          select each.* from ringlog.missing_rows(location.table_name, location.column_name, lower(piece.at), upper(piece.at)) as each
          where not location.is_of_samples
          union all
          select each.* from ringlog.missing_samples(location.table_name, case when location.is_of_samples then location.column_name::integer end,
            lower(piece.at), upper(piece.at)) as each
          where location.is_of_samples
        ) as found;
      exception when others then
        if piece.file is null then
          raise;
        end if;
        kinds := kinds || 'archive unreadable'::text;
        spans := spans || piece.at;
        details := details || format('%s: %s', piece.file, sqlerrm);
      end;
    end loop;
  end loop;

  return query
  with home as materialized (
    select distinct on (given.table_name, given.column_name)
      given.table_name, given.column_name, known.is_of_samples, taken.settings, taken.longest, taken.valid_from,
      coalesce(make_interval(secs => taken.cycle), interval '1 second') as step,
      case when known.is_of_samples then (
        -- all names that the signal has and had, and its name at the source
        select array_agg(each.signal) || array_agg(nullif(known_as.address, '')) filter (where known_as.address <> '')
        from ringlog.signal as each
        left join ringlog.sample_signal as known_as on known_as.number::text = given.column_name
        where each.table_name = given.table_name and each.column_name = given.column_name
      ) else array[name, regexp_replace(name, '\.(SEVR|STAT|TIME|DIM1|DIM2)$', ''), given.column_name] end as names
    from (
      select locations[number] as table_name, locations[number + 1] as column_name
      from generate_series(1, cardinality(locations), 2) as number
    ) as given
    join ringlog.every_table as known on known.table_name = given.table_name
    left join ringlog.how_taken as taken on taken.table_name = given.table_name
    order by given.table_name, given.column_name, taken.valid_from desc
  ), missing as materialized (
    select each.* from unnest(kinds, spans, details) as each (kind, at, detail) where each.kind is not null
    union all
    select 'gap', each.at, null from unnest(tstzmultirange(asked) - stored) as each (at)
  ), without as materialized (
    select coalesce(range_agg(missing.at), '{}') * tstzmultirange(asked) as at,
      coalesce(range_agg(missing.at) filter (where missing.kind = 'null'), '{}') * tstzmultirange(asked) as nulls
    from missing where missing.kind in ('gap', 'null')
  ), recorded as materialized (
    select distinct each.*,
      each.cause in ('source lost', 'never processed', 'unfit', 'not yet added', 'column added later', 'renamed') as explains_null,
      -- rows that come each cycle come without a source too, with NULL
      home.longest is not null and each.cause in ('source lost', 'never processed', 'unfit') as leaves_rows
    from home
    cross join lateral (
      select * from ringlog.causes_of_events(
        home.table_name, home.column_name, home.names, home.is_of_samples, home.step, begins, ends
      )
      union all
      select * from ringlog.causes_of_writers(home.table_name, home.step)
      union all
      select * from ringlog.causes_of_registry(home.table_name, home.column_name, home.names, home.is_of_samples)
      union all
      select * from ringlog.causes_of_weeks(home.table_name, home.column_name, begins, ends)
    ) as each
    cross join without
    where each.at && case
        when home.longest is not null and each.cause in ('source lost', 'never processed', 'unfit') then without.nulls
        else without.at
      end
      or each.cause = 'late'
  ), explained as (
    select coalesce(range_agg(each.at), '{}') as at
    from (
      select recorded.at from recorded where recorded.at is not null and not recorded.leaves_rows
      union all
      select missing.at from missing where missing.kind in ('log policy', 'archive unreadable')
    ) as each
  ), steady as (
    -- a writer takes only changes: without one there is no reading
    select coalesce(range_agg(tstzrange(greatest(run.since, home.valid_from), run.until)), '{}') as at,
      min(home.settings || coalesce(', policy of this signal: ' || state.policy, '') || coalesce(
        ', deadband of this signal: ' || nullif(of_samples.deadband, ''), ''
      )) as settings
    from home
    cross join lateral ringlog.runs_of_writers(home.table_name) as run
    left join ringlog.sample_signal as of_samples on home.is_of_samples and of_samples.number::text = home.column_name
    left join ringlog.signal_state as state on state.number = of_samples.number
    where home.longest is null and run.until > greatest(run.since, home.valid_from)
  ), rest as (
    select each.at
    from explained
    cross join lateral (
      select range_agg(missing.at) * tstzmultirange(asked) as at from missing where missing.kind = 'gap'
    ) as gaps
    cross join lateral unnest(gaps.at - explained.at) as each (at)
    where upper(each.at) - lower(each.at) > coalesce((
      select max(case when home.is_of_samples then 1 else 0.5 end * home.step) from home
    ), interval '0')
      -- a writer that begins or ends needs some seconds
      and not exists (
        select from recorded
        where recorded.cause in ('writer stopped', 'writer silent') and upper(each.at) - lower(each.at) <= interval '20 s'
          and (upper(each.at) = lower(recorded.at) or lower(each.at) = upper(recorded.at))
      )
  ), found as (
    -- events of single rows are shown together
    select recorded.cause, tstzrange(recorded.since, recorded.until, '[]') as at, recorded.rows, recorded.evidence,
      null as shown_by
    from recorded
    where recorded.cause in ('refused', 'unfit', 'source unreadable', 'thinned', 'damaged')
    union all
    select missing.kind, missing.at * asked, case missing.kind when 'null' then 1 end, missing.detail, missing.detail
    from missing
    where missing.kind in ('log policy', 'archive unreadable')
      or missing.kind = 'null' and not exists (
        select from recorded
        where recorded.explains_null and recorded.at @> greatest(lower(missing.at), begins)
      )
    union all
    select 'unchanged', each.at, null, steady.settings, steady.settings
    from rest cross join steady cross join lateral unnest(tstzmultirange(rest.at) * steady.at) as each (at)
    union all
    select 'unknown', each.at, null, 'nothing is recorded about this time', ''
    from rest cross join steady cross join lateral unnest(tstzmultirange(rest.at) - steady.at) as each (at)
  ), joined as (
    -- spans closer together than a five-hundredth of the time are shown as one
    select found.*, count(*) filter (where found.is_other) over (
        partition by found.cause, found.shown_by order by lower(found.at)
      ) as number
    from (
      select each.*,
        lower(each.at) > greatest((ends - begins) / 500, (select 1.5 * max(home.step) from home)) + max(upper(each.at)) over (
          partition by each.cause, each.shown_by order by lower(each.at) rows between unbounded preceding and 1 preceding
        ) as is_other
      from found as each
    ) as found
  )
  select each.cause, nullif(each.since, '-infinity'), case when each.until < 'infinity' then each.until end, each.rows, each.evidence
  from (
    select recorded.cause, recorded.since, recorded.until, recorded.rows, recorded.evidence from recorded
    where recorded.cause not in (select found.cause from found)
    union all
    select joined.cause, min(lower(joined.at)), max(upper(joined.at)), sum(joined.rows)::bigint,
      case when count(*) = 1 or joined.cause = 'null' then min(joined.evidence)
        when joined.shown_by is null then format(
          '%s events, the last: %s', count(*), (array_agg(joined.evidence order by lower(joined.at) desc))[1]
        )
        else format('%s (%s spans, the longest %s s)', joined.shown_by, count(*),
          round(extract(epoch from max(upper(joined.at) - lower(joined.at))), 3)) end
    from joined
    group by joined.cause, joined.shown_by, joined.number
  ) as each
  order by each.since, each.cause, each.until;
end
$$;
comment on function ringlog.why_missing is
$$Why a signal has no reading, from from_time (inclusive; default a day before to_time) to to_time (exclusive; default now):
spans with a cause, since when, until when (null: it lasts), the number of rows if that is known, and the record that shows
it (evidence). Causes: source lost, never processed, no rows from source, source unreadable, unfit, writer stopped, writer
silent, no call, in a spool, refused, thinned, damaged, clock, log policy, unchanged, null, not yet added, column added later,
renamed, paused, retired, late, set aside, past retention, archive unreadable, no right; unknown where nothing is recorded.
Errors: a signal that never existed (42704), an infinite or reversed time (22023).$$;
grant execute on function ringlog.why_missing to daq_reader, daq_table_reader;
