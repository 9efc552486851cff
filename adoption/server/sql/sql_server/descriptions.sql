-- SQL Server: descriptions and other extended properties of tables (minor_id 0) and columns.
select schema_name(o.schema_id), o.name, c.name, p.name, convert(nvarchar(4000), p.value)
from sys.extended_properties p
join sys.objects o on o.object_id = p.major_id
left join sys.columns c on c.object_id = p.major_id and c.column_id = p.minor_id
where p.class = 1 and o.type = 'U' and o.is_ms_shipped = 0
order by o.name, p.minor_id, p.name
