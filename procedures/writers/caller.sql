create or replace function ringlog.caller(out login text, out program text, out machine text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  -- the gateway names its sessions by number, program and machine; its current role is the login
  select
    case session_user when 'ringlog_gateway' then current_setting('role') else session_user end,
    coalesce(client[1], session),
    coalesce(client[2], inet_client_addr()::text, '')
  from (select current_setting('application_name')) as current (session)
  cross join lateral regexp_match(session, '^\d+ (.*) \((.*)\)$') as client
$$;
comment on function ringlog.caller is
$$The login that calls, also in a function of an owner's rights, its program as the client reports it, and its machine.$$;
