-- SQL Server: rules bound to columns.
select schema_name(o.schema_id), o.name, c.name, r.name, m.definition
from sys.objects o
join sys.columns c on c.object_id = o.object_id
join sys.objects r on r.object_id = c.rule_object_id
join sys.sql_modules m on m.object_id = r.object_id
where o.type = 'U' and o.is_ms_shipped = 0
order by o.name, c.column_id
