select
  table_name,
  case
    when released is not null then 'ended'
    when reported is null then 'claimed'
    when reported < now() - interval '2 minutes' then 'silent'
    else state
  end as state,
  name, epoch, acknowledged, waiting, oldest, late, refused, repeated, reconnected, latency, reported,
  troubled, trouble
from ringlog.writer
order by table_name
