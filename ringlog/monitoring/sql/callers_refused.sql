-- an event for each error of a put, and hour: how many calls were refused is not known
insert into ringlog.event as known (table_name, spool, number, "time", until, kind, message)
select
  every_table.table_name, call.procedure, extract(epoch from date_trunc('hour', call.failed))::bigint * 1000000 + call.number,
  call.failed, call.failed, 'refused',
  left(format('call by %%s on %%s (login %%s), error %%s: %%s', call.program, call.host, call.login, call.number, call.error), 1000)
from unnest(
  %s::text[], %s::text[], %s::text[], %s::text[],
  %s::timestamptz[], %s::timestamptz[], %s::integer[], %s::text[]
) as call (procedure, host, program, login, called, failed, number, error)
join ringlog.every_table on every_table.table_name = ringlog.table_now(substr(call.procedure, 5))
where call.failed is not null
on conflict on constraint event_pkey do update
set until = greatest(known.until, excluded.until), message = excluded.message
