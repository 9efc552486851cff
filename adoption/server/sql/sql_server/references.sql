-- SQL Server: foreign keys, column by column.
select
  schema_name(o.schema_id), o.name, f.name, c.name, r.name, d.name,
  f.delete_referential_action_desc, f.update_referential_action_desc, schema_name(r.schema_id), f.is_disabled
from sys.objects o
join sys.foreign_keys f on f.parent_object_id = o.object_id
join sys.foreign_key_columns k on k.constraint_object_id = f.object_id
join sys.columns c on c.object_id = k.parent_object_id and c.column_id = k.parent_column_id
join sys.objects r on r.object_id = k.referenced_object_id
join sys.columns d on d.object_id = k.referenced_object_id and d.column_id = k.referenced_column_id
where o.type = 'U' and o.is_ms_shipped = 0
order by o.name, f.name, k.constraint_column_id
