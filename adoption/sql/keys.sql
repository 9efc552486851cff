-- SQL Server: columns of unique indexes.
select o.name, i.name, c.name, i.is_primary_key
from sys.objects o
join sys.indexes i on i.object_id = o.object_id
join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id
join sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id
where o.type = 'U' and i.is_unique = 1
order by o.name, i.name, k.key_ordinal
