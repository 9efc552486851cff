insert into ringlog.last_call as known
  (procedure, host, program, login, called, failed, number, error)
select * from unnest(
  %s::text[], %s::text[], %s::text[], %s::text[],
  %s::timestamptz[], %s::timestamptz[], %s::integer[], %s::text[]
)
on conflict on constraint last_call_pkey do update
set host = excluded.host, program = excluded.program, login = excluded.login,
  called = excluded.called, failed = coalesce(excluded.failed, known.failed),
  number = coalesce(excluded.number, known.number), error = coalesce(excluded.error, known.error)
