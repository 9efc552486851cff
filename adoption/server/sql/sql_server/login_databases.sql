-- SQL Server: the databases that logins with a password begin in.
select name, default_database_name from sys.server_principals where type = 'S' order by name
