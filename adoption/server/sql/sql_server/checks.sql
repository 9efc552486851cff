-- SQL Server: CHECK constraints.
select schema_name(o.schema_id), o.name, k.name, k.definition, k.is_disabled
from sys.objects o
join sys.check_constraints k on k.parent_object_id = o.object_id
where o.type = 'U' and o.is_ms_shipped = 0
order by o.name, k.name
