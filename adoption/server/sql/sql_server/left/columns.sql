-- SQL Server 2016 and later: columns whose values are masked for some logins.
select o.name, c.name
from sys.objects o
join sys.columns c on c.object_id = o.object_id
where o.type = 'U' and o.is_ms_shipped = 0 and c.is_masked = 1
order by o.name, c.column_id
