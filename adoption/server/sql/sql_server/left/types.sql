-- SQL Server 2008 and later: types that are tables.
select t.name from sys.types t where t.is_table_type = 1 order by t.name
