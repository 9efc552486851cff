-- ASE: logins.
select name from master..syslogins order by name
