select known.name, exists (
    select from ringlog.logged_table where table_name = known.name
  ) or exists (
    select from pg_proc
    where pronamespace = 'ringlog'::regnamespace and proname = 'last_' || known.name
  ),
  exists (select from ringlog.table_group where group_name = %(name)s)
from ringlog.table_now(%(name)s) as known (name)
