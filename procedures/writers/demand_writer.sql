create or replace function ringlog.demand_writer(table_name text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  -- current_user is the owner in a security definer function; the gateway sets role to the login
  caller constant name := case current_setting('role') when 'none' then session_user else current_setting('role') end;
  called constant text := ringlog.table_now(table_name);
begin
  if pg_has_role(caller, 'daq_writer', 'usage') or pg_has_role(caller, 'ringlog_owner', 'usage') or exists (
    select from pg_proc
    where pronamespace = 'ringlog'::regnamespace and proname = format('put_%s_claimed', called)
      and has_function_privilege(caller, oid, 'execute')
  ) then
    return;
  end if;
  raise exception 'permission denied: login % may not write table %', caller, called
    using errcode = 'insufficient_privilege', hint = format('An administrator allows it: ringlog user grant %s --writes %s.', caller, called);
end
$$;
comment on function ringlog.demand_writer is
$$For procedures that write any table: demands that the caller may write this one, that is, may execute
put_<table>_claimed. Error: the caller may not (42501).$$;
