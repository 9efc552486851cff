create or replace function ringlog.lock_parameters() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  lock table ringlog.parameter_table in share update exclusive mode;
exception when lock_not_available then
  raise exception 'others are changing parameters: nothing was changed, do it again'
    using errcode = 'lock_not_available';
end
$$;
comment on function ringlog.lock_parameters is
$$Allows one transaction at a time to change parameters, until it ends: so changes have one order for all tables.$$;
