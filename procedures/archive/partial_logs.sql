create or replace function ringlog.partial_logs()
returns table (relation text, time_column text, demand text, archived boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select format('"log"."%s"', replace(logged.table_name, '"', '""')), 'time', 'ringlog.demand_log',
    exists (select from ringlog.cold_week as week where week.table_name = logged.table_name and week.rows > 0)
  from ringlog.every_table as logged
  where (exists (select from ringlog.history) or exists (select from ringlog.cold_week))
    and to_regclass(format('archive_files.%I', logged.table_name)) is null
$$;
comment on function ringlog.partial_logs is
$$The logs whose weeks may leave PostgreSQL although it cannot read the archive, and whether weeks have left. For a SELECT
from one the gateway calls `demand` with the table and the bounds of `time_column`.$$;
grant execute on function ringlog.partial_logs to public;
-- the gateway reads them before any client's login, and its role is in no group
grant usage on schema ringlog to ringlog_gateway;
