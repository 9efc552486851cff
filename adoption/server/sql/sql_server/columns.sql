-- SQL Server: columns of the tables, in their order, by the types that alias types stand for. A default is a constraint
-- of the table, or an object bound to the column.
select
  schema_name(o.schema_id), o.name, c.name, coalesce(b.name, t.name), c.max_length, c.precision, c.scale, c.is_nullable,
  coalesce(d.definition, m.definition), v.definition, c.is_identity, c.collation_name
from sys.objects o
join sys.columns c on c.object_id = o.object_id
join sys.types t on t.user_type_id = c.user_type_id
left join sys.types b on b.user_type_id = c.system_type_id
left join sys.default_constraints d on d.object_id = c.default_object_id
left join sys.sql_modules m on m.object_id = c.default_object_id
left join sys.computed_columns v on v.object_id = c.object_id and v.column_id = c.column_id
where o.type = 'U' and o.is_ms_shipped = 0
order by schema_name(o.schema_id), o.name, c.column_id
