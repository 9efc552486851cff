-- SQL Server: columns of the tables, in their order.
select o.name, c.name, t.name, c.max_length, c.precision, c.scale, c.is_nullable
from sys.objects o
join sys.columns c on c.object_id = o.object_id
join sys.types t on t.user_type_id = c.system_type_id
where o.type = 'U'
order by o.name, c.column_id
