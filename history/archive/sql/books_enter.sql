insert into ringlog.ledger as kept
  (table_name, hour, spool, produced, acknowledged, thinned, refused, late, repeated)
select %(table)s, hour, %(spool)s, 0, -count(*) filter (where refused), 0,
  count(*) filter (where refused), 0, count(*) filter (where not refused)
from unnest(%(times)s::timestamptz[], %(refused)s::boolean[]) as came (at, refused)
cross join lateral date_trunc('hour', came.at, 'UTC') as hour
group by hour
on conflict on constraint ledger_pkey do update
set acknowledged = kept.acknowledged + excluded.acknowledged,
  refused = kept.refused + excluded.refused,
  repeated = kept.repeated + excluded.repeated
