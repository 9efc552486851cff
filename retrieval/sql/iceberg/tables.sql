-- the Iceberg tables of logs that the caller may read (a policy of the catalogue), with their newest metadata
select
  found.table_name,
  found.metadata_location,
  (select archive from ringlog.history) as archive
from iceberg.iceberg_tables as found
where found.table_name <> all({others})
  and ({wanted}::text is null or found.table_name = {wanted})
order by found.table_name
