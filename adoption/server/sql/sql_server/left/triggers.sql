-- SQL Server: triggers of the database, those of assemblies, and those of tables that do not fire.
select t.name, t.parent_class, t.is_disabled, t.type
from sys.triggers t
where t.is_ms_shipped = 0 and (t.parent_class = 0 or t.is_disabled = 1 or t.type = 'TA')
order by t.name
