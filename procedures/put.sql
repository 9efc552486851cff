create or replace function {procedure}(r {ring})
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  latest integer;
  period timestamptz;
begin
  if isfinite(r."time") is not true then
    if r."time" is null then
      raise exception '%: time must not be null', {name} using errcode = 'not_null_violation';
    end if;
    raise exception '%: time must not be %', {name}, r."time" using errcode = 'datetime_field_overflow';
  end if;

  if r.seq_no is null then
    -- two callers that leave seq_no out must not take the same row
    perform pg_advisory_xact_lock({lock}, {ring_name}::regclass::oid::integer);
    select newest.seq_no into latest
    from {ring} as newest
    where newest."time" = (select max(ring."time") from {ring} as ring)
    order by
      (select next."time" from {ring} as next where next.seq_no = newest.seq_no % {rows} + 1)
        is distinct from newest."time" desc,
      newest.seq_no desc
    limit 1;
    r.seq_no := latest;
    if not exists (
      select from {ring} as ring
      where ring.seq_no = latest and ring."time" = r."time" and (ring.*) *= r
    ) then
      r.seq_no := coalesce(latest % {rows} + 1, 1);
    end if;
  elsif r.seq_no not between 1 and {rows} then
    raise exception '%: seq_no % is outside 1 to %', {name}, r.seq_no, {rows}
      using errcode = 'check_violation';
  end if;

  update {ring} as ring
  set "time" = r."time", {assignments}
  where ring.seq_no = r.seq_no and (ring."time" <= r."time" or ring."time" is null);

  if (r.seq_no - 1) % {nth} <> 0 then
    return 0;
  end if;
  if {period}::interval is not null then
    -- of two callers in one period only the first is logged
    perform pg_advisory_xact_lock({lock}, {ring_name}::regclass::oid::integer);
    period := date_bin({period}::interval, r."time", timestamptz '2000-01-01 00:00+00');
    -- a row of it in the ring has seen to the log, and is found at once where the log has many weeks
    if exists (
      select from {ring} as ring
      where ring."time" >= period and ring."time" < period + {period}::interval
        and ring.seq_no <> r.seq_no
    ) then
      return 0;
    end if;
    if exists (
      select from {log} as logged
      where logged."time" >= period and logged."time" < period + {period}::interval
    ) then
      return 0;
    end if;
  end if;

  insert into {log} (seq_no, "time", {columns})
  values (r.seq_no, r."time", {values})
  on conflict ("time", seq_no) do nothing;
  -- two ifs: in one the look into the log would be a part of every call
  if not found then
    if not exists (
      select from {log} as logged
      where logged."time" = r."time" and logged.seq_no = r.seq_no
        and row ({log_columns})::{ring} *= r
    ) then
      raise exception '%: the log has another row of seq_no % at %', {name}, r.seq_no, r."time"
        using errcode = 'unique_violation';
    end if;
  end if;
  return 0;
end
$$;

comment on function {procedure}({ring}) is
$$Stores a row: in the ring unless the row there has a newer time, and in the log as the
table's log policy says, both in one transaction. Returns 0.

seq_no left out is the row after the latest; a row that equals the latest is that row again.
The same row may be sent any number of times and is stored once.
Errors, which write nothing: time null (23502) or infinite (22008), seq_no outside the ring (23514),
another row of this seq_no and time in the log (23505).$$;

revoke all on function {procedure}({ring}) from public;
grant execute on function {procedure}({ring}) to daq_writer;
