create or replace function ringlog.names_numbers(states jsonb)
returns boolean
language sql
stable strict parallel safe
set search_path = pg_catalog, pg_temp
return case when jsonb_typeof(states) = 'object' then not exists (
  select from jsonb_each(states) as state where state.key !~ '^-?[0-9]+$' or jsonb_typeof(state.value) <> 'string'
) else false end;

comment on function ringlog.names_numbers(jsonb) is
$$Whether it is a JSON object of names of whole numbers, as states of signals are.$$;

revoke all on function ringlog.names_numbers(jsonb) from public;
