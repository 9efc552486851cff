-- SQL Server: procedures, views, triggers and functions with their texts, and whether "x" is a name in them.
select schema_name(o.schema_id), o.name, o.type, 1, m.definition, m.uses_quoted_identifier, m.uses_ansi_nulls
from sys.objects o
left join sys.sql_modules m on m.object_id = o.object_id
where o.type in ('P', 'V', 'TR', 'FN', 'IF', 'TF') and o.is_ms_shipped = 0
order by o.type, o.name
