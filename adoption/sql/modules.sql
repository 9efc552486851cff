-- SQL Server: procedures, views, triggers and functions with their texts.
select schema_name(o.schema_id), o.name, o.type, 1, m.definition
from sys.objects o
left join sys.sql_modules m on m.object_id = o.object_id
where o.type in ('P', 'V', 'TR', 'FN', 'IF', 'TF') and o.is_ms_shipped = 0
order by o.type, o.name
