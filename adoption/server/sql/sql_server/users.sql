-- SQL Server: users of the database, and their logins.
select u.name, l.name
from sys.database_principals u
left join sys.server_principals l on l.sid = u.sid
where u.type in ('S', 'U', 'G') and u.name not in ('dbo', 'guest', 'sys', 'INFORMATION_SCHEMA')
order by u.name
