-- SQL Server: columns of indexes in their order: of those that are trees of keys (clustered, nonclustered, hash), and
-- in use.
select
  schema_name(o.schema_id), o.name, i.name, c.name, i.is_primary_key, i.is_unique, k.is_descending_key, i.filter_definition,
  i.is_unique_constraint, q.is_system_named
from sys.objects o
join sys.indexes i on i.object_id = o.object_id
join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id
join sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id
left join sys.key_constraints q on q.parent_object_id = i.object_id and q.unique_index_id = i.index_id
where o.type = 'U' and o.is_ms_shipped = 0 and k.key_ordinal > 0 and i.type in (1, 2, 7) and i.is_disabled = 0
order by o.name, i.name, k.key_ordinal
