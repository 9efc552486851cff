create or replace view {now} as
select
  {stored_key},
  stored.version,
  lower(stored.valid) as changed,
  begun.login as changed_by,
  {stored_data}
from {stored} as stored
join ringlog.parameter_change as begun on begun.change = stored.change
where upper_inf(stored.valid);

create or replace view {history} as
select
  {stored_key},
  stored.version,
  lower(stored.valid) as valid_from,
  upper(stored.valid) as valid_to,
  begun.change,
  begun.login as changed_by,
  begun.program,
  begun.machine,
  begun.comment,
  ended.change as ended,
  ended.login as ended_by,
  {stored_data}
from {stored} as stored
join ringlog.parameter_change as begun on begun.change = stored.change
left join ringlog.parameter_change as ended on ended.change = stored.ended;
