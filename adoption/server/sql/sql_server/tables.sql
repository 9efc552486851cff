-- SQL Server: tables of the database, with their rows.
select
  schema_name(o.schema_id),
  o.name,
  (select sum(p.rows) from sys.partitions p where p.object_id = o.object_id and p.index_id in (0, 1))
from sys.objects o
where o.type = 'U' and o.is_ms_shipped = 0
order by o.name
