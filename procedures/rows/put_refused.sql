  -- a statement of its own: as part of an expression it would read the log in every call
  if not exists (
    select from {log} as logged
    where logged."time" = r."time" and logged.seq_no = r.seq_no
      and row ({log_columns})::{ring} *= r
  ) then
    raise exception '%: the log has another row of seq_no % at %: %. Give each reading a time or a seq_no of its own (datetime has steps of 1/300 s, a time as text keeps its microseconds)',
      {name}, r.seq_no, r."time", coalesce((
        select coalesce(ringlog.differences(to_jsonb(logged.*), to_jsonb(r)), 'its values differ')
        from {log} as logged
        where logged."time" = r."time" and logged.seq_no = r.seq_no
      ), 'another unique index treats it as the same row')
      using errcode = 'unique_violation';
  end if;
