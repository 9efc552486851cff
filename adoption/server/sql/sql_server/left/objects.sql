-- SQL Server: independent objects, of kinds that do not exist here.
select o.type_desc, schema_name(o.schema_id), o.name
from sys.objects o
where o.is_ms_shipped = 0 and o.parent_object_id = 0 and o.type not in ('U', 'P', 'V', 'FN', 'IF', 'TF', 'R', 'D', 'TT')
order by o.type_desc, o.name
