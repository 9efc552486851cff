create or replace function {procedure}(
  signals integer[],
  times bigint[],
  samples {values},
  severities smallint[] default null,
  statuses smallint[] default null,
  _epoch bigint default null,
  nulls integer[] default null{lengths}
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  n constant integer := cardinality(signals);
  latest constant bigint := ringlog.nanoseconds(clock_timestamp() + {drift}::interval);
  merged timestamptz;
  -- nanoseconds up to which there are summaries
  summarised bigint;
  unknown bigint;
  doubtful bigint;
  earliest bigint;
  dropped record;
  late_hours timestamptz[];
  overlapping integer[];
  position integer;
  other record;
begin
  if n is null or n <> cardinality(times) or n <> cardinality({of_each}) or n <> coalesce(cardinality(severities), n)
    or n <> coalesce(cardinality(statuses), n)
  then
    raise exception '%: the arrays must have an element for each sample', {name} using errcode = 'array_subscript_error';
  end if;
  foreach position in array coalesce(nulls, '{{}}') loop
    if (position between 1 and n) is not true then
      raise exception '%: nulls has places of samples, not %', {name}, position using errcode = 'array_subscript_error';
    end if;
    {of_each}[position] := null;
  end loop;
{check}  if array_position(signals, null) is not null or array_position(times, null) is not null then
    raise exception '%: signal and time must not be null', {name} using errcode = 'not_null_violation';
  end if;
  if _epoch is not null then
    -- a take-over waits for this transaction, and this one sees an earlier take-over
    lock table only {log} in row exclusive mode;
    if not exists (
      select from ringlog.writer as holder
      where holder.table_name = {table} and holder.epoch = _epoch and holder.released is null
    ) then
      raise exception '%: another writer has taken the table over', {name} using errcode = 'RL001';
    end if;
  end if;
  -- a repeat waits for the call before it, and finds its samples
  lock table only {log} in share update exclusive mode;
  select
    -- a writer of ringlog may not know yet that one has retired
    count(*) filter (where known.state is null or known.state = 'retired' and _epoch is null),
    count(*) filter (where known.state <> 'active' or sent."time" > latest),
    min(sent."time")
  into unknown, doubtful, earliest
  from unnest(signals, times) as sent (signal, "time")
  left join ringlog.sample_signal as known on known.number = sent.signal and known.table_name = {table};
  if earliest < 0 then
    raise exception '%: the time % ns is before 1970', {name}, earliest using errcode = 'datetime_field_overflow';
  end if;
  if unknown > 0 then
    raise exception '%: the table has no signal of number %', {name}, (
      select sent.signal from unnest(signals) as sent (signal)
      where not exists (
        select from ringlog.sample_signal as known
        where known.number = sent.signal and known.table_name = {table}
          and (known.state <> 'retired' or _epoch is not null)
      )
      limit 1
    ) using errcode = 'undefined_object', hint = 'list_signals has their numbers, and add_signal adds one.';
  end if;

  -- only these samples are dropped
  for dropped in
    select
      case when ahead then 'clock' else 'paused' end as kind, count(*)::integer as n,
      min(known.signal) as first, max(ringlog.moment(sent."time")) as "time"
    from unnest(signals, times) as sent (signal, "time")
    join ringlog.sample_signal as known on known.number = sent.signal
    cross join lateral (values (sent."time" > latest)) as clock (ahead)
    where doubtful > 0 and (ahead or known.state <> 'active')
    group by 1
  loop
    insert into ringlog.event as stored_event (table_name, spool, number, "time", until, kind, rows, message)
    values (
      {table}, {name} || ' ' || dropped.kind, extract(epoch from date_trunc('hour', now()))::bigint, now(), now(),
      dropped.kind, dropped.n,
      format(
        case dropped.kind
          when 'clock' then 'samples of a time too far ahead of the server''s clock are not stored, as of %s'
          else 'samples of paused and retired signals are not stored, as of %s'
        end,
        dropped.first
      )
    )
    on conflict on constraint event_pkey do update
    set until = excluded.until, rows = stored_event.rows + excluded.rows, message = excluded.message;
    if dropped.kind = 'clock' then
      raise notice '%: % samples are not stored, as one of signal ''%'': the time % is more than % ahead of the server''s clock',
        {name}, dropped.n, dropped.first, dropped."time", {drift}::interval;
    else
      raise notice '%: % samples are not stored, as one of signal ''%'': it is paused or retired', {name}, dropped.n, dropped.first;
    end if;
  end loop;
  if doubtful > 0 then
    insert into ringlog.dropped_sample as known (number, table_name, hour, kind, since, until, rows)
    select sent.signal, {table}, date_trunc('hour', now(), 'UTC'), clock.kind, now(), now(), count(*)
    from unnest(signals, times) as sent (signal, "time")
    join ringlog.sample_signal as known on known.number = sent.signal
    cross join lateral (values (case when sent."time" > latest then 'clock' else 'paused' end)) as clock (kind)
    where clock.kind = 'clock' or known.state <> 'active'
    group by sent.signal, clock.kind
    on conflict on constraint dropped_sample_pkey do update
    set until = excluded.until, rows = known.rows + excluded.rows;
    select array_agg(case when sent."time" <= latest and known.state = 'active' then sent.signal end order by sent.position)
    into signals
    from unnest(signals, times) with ordinality as sent (signal, "time", position)
    join ringlog.sample_signal as known on known.number = sent.signal;
    if array_remove(signals, null) = '{{}}' then
      return 0;
    end if;
  end if;

  with came as materialized (
    select
      sent.signal,
      count(*)::integer as n,
      count(distinct sent."time") as times_in_all,
      ringlog.moment(min(sent."time")) as begins,
      ringlog.moment(max(sent."time")) as ends,
      array_agg(sent."time" order by sent."time") as times,
      {value_of_block} as {of_block},
      case when bool_or(sent.severity <> 0) then array_agg(coalesce(sent.severity, 0::smallint) order by sent."time") end
        as severities,
      case when bool_or(sent.status <> 0) then array_agg(coalesce(sent.status, 0::smallint) order by sent."time") end
        as statuses
    from {sent} as sent (signal, "time", value, severity, status)
    where sent.signal is not null
    -- no block is of two hours
    group by sent.signal, {block_of_sample}
  ), judged as materialized (
    select came.*, came.n <> came.times_in_all or exists (
      select from {log} as there
      where there.signal = came.signal and there."time" >= came.begins and there."time" < came.begins + interval '1 hour'
        and there.begins <= came.ends
    ) as overlaps
    from came
  ), stored as (
    insert into {log} (signal, n, "time", begins, times, {of_block}, severities, statuses)
    select judged.signal, judged.n, judged.ends, judged.begins, judged.times, judged.{of_block}, judged.severities,
      judged.statuses
    from judged
    where not judged.overlaps
  )
  select array_agg(distinct judged.signal) filter (where judged.overlaps), array_agg(distinct date_trunc('hour', judged.begins, 'UTC'))
  into overlapping, late_hours
  from judged;

  if overlapping is not null then
    for other in
      select sent.signal, ringlog.moment(sent."time") as "time"
      from (
        select distinct each.signal, each."time", row (each.value, coalesce(each.severity, 0), coalesce(each.status, 0))::text
        from {sent} as each (signal, "time", value, severity, status)
        where each.signal = any(overlapping)
        union
        select each.signal, stored."time", row (stored.value, coalesce(stored.severity, 0), coalesce(stored.status, 0))::text
        from unnest(signals, times) as each (signal, "time")
        cross join lateral (
          select block.times, block.{of_block}, block.severities, block.statuses
          from {log} as block
          where each.signal = any(overlapping) and block.signal = each.signal
            and block."time" >= ringlog.moment(each."time")
            and block."time" < ringlog.moment(each."time") + interval '1 hour'
            and block.begins <= ringlog.moment(each."time")
        ) as block
        cross join lateral {samples_of_block} as stored ("time", value, severity, status)
        where stored."time" = each."time"
      ) as sent
      group by sent.signal, sent."time"
      having count(*) > 1
      limit 1
    loop
      raise exception '%: the log has another sample of signal ''%'' at %: give each sample a time of its own',
        {name}, ringlog.signal_of_number(other.signal), other."time"
        using errcode = 'unique_violation';
    end loop;
    insert into {log} (signal, n, "time", begins, times, {of_block}, severities, statuses)
    select
      sent.signal, count(*), ringlog.moment(max(sent."time")), ringlog.moment(min(sent."time")),
      array_agg(sent."time" order by sent."time"), {value_of_block},
      array_agg(coalesce(sent.severity, 0::smallint) order by sent."time"),
      array_agg(coalesce(sent.status, 0::smallint) order by sent."time")
    from (
      select distinct on (each.signal, each."time") each.*
      from {sent} as each (signal, "time", value, severity, status)
      where each.signal = any(overlapping)
      order by each.signal, each."time"
    ) as sent
    where not exists (
      select from {log} as block
      where block.signal = sent.signal and block."time" >= ringlog.moment(sent."time")
        and block."time" < ringlog.moment(sent."time") + interval '1 hour'
        and block.begins <= ringlog.moment(sent."time") and sent."time" = any(block.times)
    )
    group by sent.signal, {block_of_sample};
  end if;

  select known.merged_until into merged from ringlog.sample_table as known where known.table_name = {table};
  if late_hours[1] < merged then
    insert into ringlog.sample_mark (table_name, hour)
    select {table}, each from unnest(late_hours) as each where each < merged
    on conflict do nothing;
  end if;
  -- after the insert: see ringlog.history.summaries
  summarised := pg_sequence_last_value({summarised}) * 1000;
  if earliest < summarised then
    -- a call of many signals marks all
    insert into ringlog.summary_mark (table_name, "time", column_name)
    select distinct {table}, date_trunc('hour', ringlog.moment(sent."time"), 'UTC'),
      case when (select count(distinct number) from unnest(signals) as number) <= 100 then sent.signal::text end
    from unnest(signals, times) as sent (signal, "time")
    where sent."time" < summarised and sent.signal is not null;
  end if;
  return 0;
end
$$;
comment on function {procedure} is
$$Stores many samples, all of them or none: arrays with an element for each sample: the number of its signal
(list_signals), its time in nanoseconds since 1970-01-01 UTC, value (null: no reading), and EPICS's alarm severity and
status, 0 where they are left out. A sample that is stored already is stored once. Samples further ahead of the
server's clock than the table's clock_drift, and those of paused signals, with _epoch also of retired ones, are
dropped; a message and ringlog.event report them. nulls has the places, from 1, of samples without a reading, which
packed arrays cannot show.{of_waveforms} With _epoch it is for the writer that has the table's claim: see
claim_writer. Errors, which write nothing: arrays of different lengths (2202E), a null signal or time (23502), no such
signal in this table (42704), another sample of this signal and time (23505), another writer has taken the table over
(RL001).$$;
grant execute on function {procedure} to daq_writer;
