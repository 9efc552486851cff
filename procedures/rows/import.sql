create or replace function {procedure}(
  _file text, _rows_before bigint, _numbered boolean, _last boolean, out stored bigint, out repeated bigint,
  out refused bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  _taken bigint;
  _rows bigint;
  _first timestamptz;
  _end timestamptz;
  _lowest integer;
  _highest integer;
  _ahead bigint;
  _until timestamptz;
  _known record;
begin
  if (select relowner = current_user::regrole from pg_class where oid = to_regclass({staged_name})) is not true then
    raise exception '%: begin_import comes first', {name} using errcode = 'object_not_in_prerequisite_state';
  end if;
  select import.rows into _taken
  from ringlog.imported_file as import
  where import.table_name = {table} and import.file = _file
  for update;
  if _taken is distinct from _rows_before then
    raise exception '%: of % the row after % is next, not that after %', {name}, _file, _taken, _rows_before
      using errcode = 'RL005';
  end if;

  select count(*), min(r."time"), max(r."time"), min(r.seq_no), max(r.seq_no)
  into _rows, _first, _end, _lowest, _highest
  from {staged} as r;
  if exists (select from {staged} as r where r."time" is null or r.seq_no is null) then
    raise exception '%: time and seq_no must not be null', {name} using errcode = 'not_null_violation';
  end if;
  if not (isfinite(_first) and isfinite(_end)) then
    raise exception '%: time must not be infinite', {name} using errcode = 'datetime_field_overflow';
  end if;
  if _lowest < 1 or _highest > {rows} then
    raise exception '%: seq_no % is outside 1 to %', {name},
      case when _lowest < 1 then _lowest else _highest end, {rows}
      using errcode = 'check_violation';
  end if;
{staged_point_checks}
{staged_decimal_check}
  {staged_without_nan}

  repeated := 0;
  refused := 0;
  if exists (select from {log} as logged where logged."time" between _first and _end) then
    for _known in
      with found as (
        select r.ctid as address,
          bool_or(
            row (r.seq_no, logged."time", {logged_values})::{ring} *= row (r.seq_no, r."time", {values})::{ring}
          ) as same
        from {staged} as r
        join {log} as logged
          on logged."time" = r."time" and (logged.seq_no = r.seq_no or not _numbered)
        group by r.ctid
      ),
      left_out as (
        delete from {staged} as r using found
        where r.ctid = found.address
        returning r."time" as at, found.same, case when not found.same then to_json(r.*)::text end as text
      )
      select date_trunc('hour', at, 'UTC') as hour, count(*) filter (where same) as same,
        count(*) filter (where not same) as other,
        array_agg(text) filter (where not same) as texts
      from left_out
      group by 1
    loop
      repeated := repeated + _known.same;
      refused := refused + _known.other;
      insert into ringlog.ledger as kept
        (table_name, hour, spool, produced, acknowledged, thinned, refused, late, repeated)
      values ({table}, _known.hour, _file, _known.other, 0, 0, _known.other, 0, _known.same)
      on conflict on constraint ledger_pkey do update
      set produced = kept.produced + excluded.produced, refused = kept.refused + excluded.refused,
        repeated = kept.repeated + excluded.repeated;
      insert into ringlog.event (spool, number, table_name, "time", kind, rows, message)
      select _file, numbered.last + position, {table}, _known.hour, 'refused', 1,
        'the log has another row of this time' || case when _numbered then ' and seq_no' else '' end || ': ' || text
      from unnest(_known.texts) with ordinality as conflict (text, position)
      cross join (
        select coalesce(max(event.number), 0) as last from ringlog.event where event.spool = _file
      ) as numbered
      -- all are counted in the ledger
      where position <= 100;
    end loop;
  end if;
  stored := _rows - repeated - refused;

  select count(*) into _ahead from {staged} as r where r."time" > now() + {tolerance}::interval;
  if _ahead > 0 then
    insert into ringlog.event (spool, number, table_name, "time", until, kind, rows, message)
    select _file, coalesce(max(event.number), 0) + 1, {table}, now(), now(), 'clock', _ahead,
      'rows of a time far ahead of the server''s clock: in the log, not in the ring'
    from ringlog.event
    where event.spool = _file;
  end if;

  if exists (select from {ring} as ring where ring."time" is null or ring."time" <= _end) then
    update {stored} as ring
    set {assignments}
    from (
      select distinct on (came.seq_no) came.*
      from {staged} as came
      where (came."time" > now() + {tolerance}::interval) is not true
      order by came.seq_no, came."time" desc
    ) as r
    where ring.seq_no = r.seq_no and (ring."time" <= r."time" or ring."time" is null);
  end if;

  if {period}::interval is null then
    insert into {log} (seq_no, "time", {columns})
    select r.seq_no, r."time", {values}
    from {staged} as r
    where (r.seq_no - 1) % {nth} = 0 or r."time" > now() + {tolerance}::interval;
  else
    lock table only {log} in share update exclusive mode;
    insert into {log} (seq_no, "time", {columns})
    select r.seq_no, r."time", {values}
    from (
      select came.*, came."time" > now() + {tolerance}::interval as _far,
        row_number() over (
          partition by date_bin({period}::interval, came."time", timestamptz '2000-01-01 00:00+00')
          order by came."time", came.seq_no
        ) as _rank,
        date_bin({period}::interval, came."time", timestamptz '2000-01-01 00:00+00') as _begins
      from {staged} as came
    ) as r
    where r._far or r._rank = 1 and not exists (
      select from {log} as logged
      where logged."time" >= r._begins and logged."time" < r._begins + {period}::interval
    );
  end if;

  -- after the insert: see ringlog.history.summaries
  _until := timestamptz 'epoch' + pg_sequence_last_value({summarised}) * interval '1 microsecond';
  insert into ringlog.summary_mark (table_name, "time")
  select distinct {table}, date_bin(make_interval(secs => spans.levels[1]), r."time", timestamptz 'epoch')
  from ringlog.summarised as spans
  join {staged} as r on r."time" < _until
  where spans.table_name = {table} and spans.levels <> '{{}}';

  insert into ringlog.ledger as kept
    (table_name, hour, spool, produced, acknowledged, thinned, refused, late, repeated)
  select {table}, date_trunc('hour', r."time", 'UTC'), _file, count(*), count(*), 0, 0, 0, 0
  from {staged} as r
  group by 2
  on conflict on constraint ledger_pkey do update
  set produced = kept.produced + excluded.produced, acknowledged = kept.acknowledged + excluded.acknowledged;
  update ringlog.imported_file as import
  set rows = import.rows + _rows, ended = case when _last then now() end
  where import.table_name = {table} and import.file = _file;
end
$$;
comment on function {procedure} is
$$Stores the rows of pg_temp.<table>, which follow this number of rows of a file, as successive calls of put would, and
records the position, in one transaction: see begin_import. `_numbered`: their seq_no is the file's own; otherwise a row
of the log with the same time is compared with them. Rows that the log has are skipped; rows that differ from it are
refused, counted in ringlog.ledger and recorded in ringlog.event. Returns the numbers of rows.
Errors, which store nothing: begin_import did not come first (55000), another row is next (RL005), time or seq_no null
(23502), time infinite (22008), NaN in a numeric column (22003), seq_no outside the ring (23514), a waveform too long
(22001), two rows with one time and seq_no (23505).$$;
grant execute on function {procedure} to daq_writer;
