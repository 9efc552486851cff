-- whether a file of the archive has rows of a table
select week.file
from ringlog.cold_week as week
where week.table_name = {table} and week.file = {file}
