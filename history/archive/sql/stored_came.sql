create temporary table came on commit drop as
select distinct on (late.signal, late.ns)
  late.signal as number, late.ns, ringlog.moment(late.ns) as "time", late.value,
  coalesce(late.severity, 0::smallint) as severity, coalesce(late.status, 0::smallint) as status,
  concat_ws(' ', late.value::text, coalesce(late.severity, 0), coalesce(late.status, 0)) as text, kept.there
from (
  select block.signal, block."time" as ends, each.*
  from {late} as block
  cross join lateral {samples_of_block} as each (ns, value, severity, status)
) as late
left join lateral (
  select concat_ws(' ', one.value::text, coalesce(one.severity, 0), coalesce(one.status, 0)) as there
  from {partition} as block
  cross join lateral {samples_of_block} as one (ns, value, severity, status)
  where block.signal = late.signal and block."time" >= ringlog.moment(late.ns)
    and block."time" < ringlog.moment(late.ns) + interval '1 hour'
    and block.begins <= ringlog.moment(late.ns) and one.ns = late.ns
) as kept on true
where late.ends >= {start} and late.ends < {end}
order by late.signal, late.ns
