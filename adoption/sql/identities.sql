-- SQL Server: where identity columns begin, their steps, and the last value that each has given.
select
  schema_name(o.schema_id), o.name, convert(numeric(38, 0), i.seed_value), convert(numeric(38, 0), i.increment_value),
  convert(numeric(38, 0), i.last_value)
from sys.objects o
join sys.identity_columns i on i.object_id = o.object_id
where o.type = 'U' and o.is_ms_shipped = 0
order by o.name
