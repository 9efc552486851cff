-- SQL Server 2016 and later: tables that keep their own history (2: the table, 1: its history).
select t.name, t.temporal_type
from sys.tables t
where t.is_ms_shipped = 0 and t.temporal_type <> 0
order by t.name
