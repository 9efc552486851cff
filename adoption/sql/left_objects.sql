-- SQL Server: objects that stand by themselves, of kinds that there are none of here.
select o.type_desc, schema_name(o.schema_id), o.name
from sys.objects o
where o.is_ms_shipped = 0 and o.parent_object_id = 0 and o.type not in ('U', 'P', 'V', 'FN', 'IF', 'TF', 'R', 'D', 'TT')
order by o.type_desc, o.name
