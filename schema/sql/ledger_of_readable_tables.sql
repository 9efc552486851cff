alter table ringlog.event enable row level security;
create policy of_readable_tables on ringlog.event for select using (
  pg_has_role(current_user, {reader}, 'usage')
  or has_table_privilege(to_regclass(format('log.%I', table_name)), 'select')
)
