-- bytes of each log with its indexes, the largest first
select every_table.table_name, coalesce(sum(pg_total_relation_size(part.relid)), 0)::bigint as bytes
from ringlog.every_table
cross join lateral pg_partition_tree(to_regclass(format('weeks.%I', every_table.table_name))) as part
where every_table.table_name <> all({others})
group by every_table.table_name
order by bytes desc, every_table.table_name
