-- ASE: the bytes of a character of nchar and nvarchar.
select @@ncharsize
