alter table {table} enable row level security;
create policy of_readable_signals on {table} for select using (
  signals is null or pg_has_role(current_user, {reader}, 'usage') or exists (
    select from (
      select known.signal, known.table_name from ringlog.signal as known
      union all
      select known.signal, known.table_name from ringlog.signal_elsewhere as known
    ) as known
    where known.signal = any (signals) and known.table_name in (select ringlog.readable_tables())
  )
)
