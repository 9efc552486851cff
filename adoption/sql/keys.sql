-- SQL Server: columns of indexes in their order.
select
  schema_name(o.schema_id), o.name, i.name, c.name, i.is_primary_key, i.is_unique, k.is_descending_key, i.filter_definition
from sys.objects o
join sys.indexes i on i.object_id = o.object_id
join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id
join sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id
where o.type = 'U' and o.is_ms_shipped = 0 and k.key_ordinal > 0
order by o.name, i.name, k.key_ordinal
