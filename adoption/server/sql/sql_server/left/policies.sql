-- SQL Server 2016 and later: policies that show a login some rows only.
select p.name from sys.security_policies p where p.is_enabled = 1 order by p.name
