-- Whether this session has state that ends with its connection: temporary tables and procedures, held locks, LISTEN,
-- cursors, statements prepared by SQL, its own settings. The search path counts only if it differs from the one that
-- the gateway has set.
select exists (select from pg_catalog.pg_class
                where relnamespace = pg_catalog.pg_my_temp_schema())
    or exists (select from pg_catalog.pg_proc
                where pronamespace = pg_catalog.pg_my_temp_schema())
    or exists (select from pg_catalog.pg_locks
                where pid = pg_catalog.pg_backend_pid() and locktype = 'advisory')
    or exists (select from pg_catalog.pg_listening_channels())
    or exists (select from pg_catalog.pg_cursors where is_holdable)
    or exists (select from pg_catalog.pg_prepared_statements where from_sql)
    or exists (select from pg_catalog.pg_settings
                where source = 'session'
                  and not (name = 'search_path'
                           and setting = pg_catalog.quote_ident(:'schema') || ', ' || reset_val))
