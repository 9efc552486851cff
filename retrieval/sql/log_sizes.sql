-- bytes of each log with its indexes, the largest first
select logged_table.table_name, coalesce(sum(pg_total_relation_size(part.relid)), 0)::bigint as bytes
from (
  select table_name from ringlog.logged_table
  union all
  select table_name from ringlog.sample_table
) as logged_table
cross join lateral pg_partition_tree(to_regclass(format('weeks.%I', logged_table.table_name))) as part
where logged_table.table_name <> all({others})
group by logged_table.table_name
order by bytes desc, logged_table.table_name
