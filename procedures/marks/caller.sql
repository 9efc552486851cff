create or replace function ringlog.caller(out login text, out program text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case session_user when 'ringlog_gateway' then current_setting('role') else session_user end,
    coalesce((regexp_match(session, '^\d+ (.*) \((.*)\)$'))[1], session)
  from (select current_setting('application_name')) as current (session)
$$;

comment on function ringlog.caller is
$$The login that calls, also in a function of an owner's rights, and its program as the client reports it.$$;
