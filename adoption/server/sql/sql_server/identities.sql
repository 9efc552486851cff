-- SQL Server: where identity columns begin, their steps, and the last value that each has given. ident_current gives the
-- first value where none has been given yet.
select
  schema_name(o.schema_id), o.name, convert(numeric(38, 0), i.seed_value), convert(numeric(38, 0), i.increment_value),
  case
    when i.last_value is not null
      then convert(numeric(38, 0), ident_current(quotename(schema_name(o.schema_id)) + '.' + quotename(o.name)))
  end
from sys.objects o
join sys.identity_columns i on i.object_id = o.object_id
where o.type = 'U' and o.is_ms_shipped = 0
order by o.name
