-- SQL Server: logins with a password.
select name from sys.server_principals where type = 'S' order by name
