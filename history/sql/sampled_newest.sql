select newest."time", newest.value as {column}, newest.nanoseconds, newest.severity, newest.status
from unnest({numbers}::integer[]) with ordinality as wanted (number, position)
left join lateral ringlog.{procedure}({at}, wanted.number) as newest on true
order by wanted.position
