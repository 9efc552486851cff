-- ASE: the databases that logins begin in.
select name, dbname from master..syslogins order by name
