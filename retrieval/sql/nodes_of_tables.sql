-- every table, and the node that calls for it go to; null is this server
select table_name, null as node
from ringlog.logged_table
where table_name not in (select table_name from ringlog.signal_elsewhere)
union
select table_name, node from ringlog.signal_elsewhere
