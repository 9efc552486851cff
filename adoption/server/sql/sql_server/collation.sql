-- SQL Server: the default collation of the database. A sql_variant, which not every driver reads.
select convert(varchar(128), databasepropertyex(db_name(), 'Collation'))
