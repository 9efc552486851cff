-- SQL Server: who may do what with which object.
select g.name, p.permission_name, o.name, p.state_desc
from sys.database_permissions p
join sys.database_principals g on g.principal_id = p.grantee_principal_id
join sys.objects o on o.object_id = p.major_id
where p.class = 1
order by o.name, g.name, p.permission_name
