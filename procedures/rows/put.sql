create or replace function {procedure}(r {ring}) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  earlier timestamptz;
  newest timestamptz;
  chosen integer;
  stored integer;
  period timestamptz;
begin
{point_checks}
{decimal_check}
  {without_nan}

  -- a valid row passes one condition: each condition costs time in every call
  if (
    isfinite(r."time") and r.seq_no between 1 and {rows} and r."time" <= now() + interval '1 minute'
    and coalesce(current_setting('tsql.repeated', true), '') = ''
  ) is not true then
    if isfinite(r."time") is not true then
      if r."time" is null then
        raise exception '%: time must not be null', {name} using errcode = 'not_null_violation';
      end if;
      raise exception '%: time must not be %', {name}, r."time" using errcode = 'datetime_field_overflow';
    end if;
    if r.seq_no not between 1 and {rows} then
      raise exception '%: seq_no % is outside 1 to %', {name}, r.seq_no, {rows}
        using errcode = 'check_violation';
    end if;

    -- set by the gateway for a time without a zone in the hour that occurs twice
    if current_setting('tsql.repeated', true) <> '' then
      earlier := r."time"
        - make_interval(secs => (current_setting('tsql.repeated')::json ->> 'time')::double precision);
      select max(ring."time") into newest from {stored} as ring;
      r."time" := ringlog.likely_reading(earlier, r."time", newest, {cycle});
    end if;

    if r."time" > now() + interval '1 minute' then
      if r."time" > now() + {tolerance}::interval then
        -- the ring would show this row until then
        if r.seq_no is null then
          select
            max(logged.seq_no) filter (
              where row (logged.seq_no, logged."time", {values})::{ring} *= row ({log_columns})::{ring}
            ),
            max(logged.seq_no)
          into stored, chosen
          from {log} as logged
          where logged."time" = r."time";
          r.seq_no := coalesce(stored, chosen % {rows} + 1, 1);
        end if;
        insert into {log} (seq_no, "time", {columns})
        values (r.seq_no, r."time", {values})
        on conflict ("time", seq_no) do nothing;
        if found then
          insert into ringlog.event as stored_event (table_name, spool, number, "time", until, kind, rows, message)
          values (
            {table}, {name}, extract(epoch from date_trunc('hour', now()))::bigint, now(), now(), 'clock', 1,
            'rows of a time far ahead of the server''s clock: in the log, not in the ring'
          )
          on conflict on constraint event_pkey do update
          set until = excluded.until, rows = stored_event.rows + 1;
          -- see below: the server's clock may have been ahead earlier
          if r."time" < timestamptz 'epoch' + pg_sequence_last_value({summarised}) * interval '1 microsecond' then
            insert into ringlog.summary_mark (table_name, "time") values ({table}, r."time");
          end if;
        else
{refusal}
        end if;
        raise notice '%: the time % is more than % ahead of the server''s clock: the row is in the log, not in the ring',
          {name}, r."time", {tolerance}::interval;
        return 0;
      end if;
      raise notice '%: the time % is % ahead of the server''s clock: is it of another time zone?',
        {name}, r."time", date_trunc('second', r."time" - now());
    end if;

    if r.seq_no is null then
      -- two callers without seq_no must not take the same row
      lock table only {log} in share update exclusive mode;
      select ring.seq_no into chosen
      from {ring} as ring
      where ring."time" = r."time" and (ring.*) *= row (ring.seq_no, ring."time", {values})::{ring};
      if not found then
        select latest.seq_no, latest."time" into chosen, newest from {last}() as latest;
        -- the latest row may have had a seq_no
        select coalesce(arrival.seq_no, chosen) into chosen
        from (values (true)) as always
        left join ringlog.arrival on arrival.table_name = {table} and arrival."time" = newest;
        chosen := coalesce(chosen % {rows} + 1, 1);
        insert into ringlog.arrival as known (table_name, seq_no, "time")
        values ({table}, chosen, greatest(newest, r."time"))
        on conflict on constraint arrival_pkey do update
        set seq_no = excluded.seq_no, "time" = excluded."time";
      end if;
      r.seq_no := chosen;
    end if;
  end if;

  update {stored} as ring
  set {assignments}
  where ring.seq_no = r.seq_no and (ring."time" <= r."time" or ring."time" is null);

{policy}

  insert into {log} (seq_no, "time", {columns})
  values (r.seq_no, r."time", {values})
  -- without naming the index, which PostgreSQL would look up for the week in each call
  on conflict do nothing;
  if found then
    -- after the insert: see ringlog.history.summaries
    if r."time" < timestamptz 'epoch' + pg_sequence_last_value({summarised}) * interval '1 microsecond' then
      insert into ringlog.summary_mark (table_name, "time") values ({table}, r."time");
    end if;
    return 0;
  end if;
{refusal}
  return 0;
end
$$;
comment on function {procedure} is
$$Stores a row: in the ring unless the row there has a newer time, and in the log according to the table's log policy,
both in one transaction. Returns 0. Without seq_no the row gets the number after the last row received; a row whose
time and values are in the ring already is the same row. The same row may be sent any number of times and is stored
once. A row whose time is further ahead of the server's clock than the facility's clock_tolerance is stored in the log
only. A message reports a time that is more than a minute ahead. Errors, which write nothing: time null (23502) or
infinite (22008), NaN in a numeric column (22003, T-SQL's 8023), seq_no outside the ring (23514), another row of this
seq_no and time in the log (23505).$$;
grant execute on function {procedure} to daq_writer;
