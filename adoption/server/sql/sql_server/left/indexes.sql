-- SQL Server: indexes with features that do not exist here, and disabled ones.
select o.name, i.name, i.type_desc, i.is_disabled, i.ignore_dup_key, o.type
from sys.objects o
join sys.indexes i on i.object_id = o.object_id
where o.type in ('U', 'V') and o.is_ms_shipped = 0 and i.type > 0 and i.is_hypothetical = 0
  and (i.is_disabled = 1 or i.ignore_dup_key = 1 or i.type not in (1, 2, 7) or o.type = 'V')
order by o.name, i.name
