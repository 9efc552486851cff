-- SQL Server: who may do what: with the database (class 0), an object or its columns (1), a schema (3).
select g.name, p.permission_name, p.state_desc, p.class, o.name, c.name, schema_name(p.major_id),
  schema_name(o.schema_id)
from sys.database_permissions p
join sys.database_principals g on g.principal_id = p.grantee_principal_id
left join sys.objects o on p.class = 1 and o.object_id = p.major_id
left join sys.columns c on p.class = 1 and p.minor_id > 0 and c.object_id = p.major_id and c.column_id = p.minor_id
where p.class in (0, 3) or (p.class = 1 and o.is_ms_shipped = 0)
order by o.name, g.name, p.permission_name, p.minor_id
