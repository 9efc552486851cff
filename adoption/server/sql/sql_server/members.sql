-- SQL Server: members of roles.
select r.name, m.name
from sys.database_role_members k
join sys.database_principals r on r.principal_id = k.role_principal_id
join sys.database_principals m on m.principal_id = k.member_principal_id
order by r.name, m.name
