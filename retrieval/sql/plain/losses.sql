-- counts of the rows of writers, by table and hour
select lost.*
from ringlog.logged_table
cross join lateral ringlog.losses({start}, {end}, logged_table.table_name) as lost
where ({of_table}::text is null or logged_table.table_name = {of_table})
  and logged_table.table_name <> all({others})
order by lost.hour, lost.table_name
