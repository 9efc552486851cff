-- SQL Server: procedures, views, triggers and functions with their texts.
select o.name, o.type, m.definition
from sys.objects o
join sys.sql_modules m on m.object_id = o.object_id
where o.type in ('P', 'V', 'TR', 'FN', 'IF', 'TF')
order by o.type, o.name
