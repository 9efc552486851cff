-- SQL Server: tables of the database, with their rows.
select
  o.name,
  (select sum(p.rows) from sys.partitions p where p.object_id = o.object_id and p.index_id in (0, 1))
from sys.objects o
where o.type = 'U'
order by o.name
