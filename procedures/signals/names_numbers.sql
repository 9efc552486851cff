create or replace function ringlog.names_numbers(states text) returns boolean
language plpgsql stable strict parallel safe set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
  return case when jsonb_typeof(states::jsonb) = 'object' then not exists (
    select from jsonb_each(states::jsonb) as state where state.key !~ '^-?[0-9]+$' or jsonb_typeof(state.value) <> 'string'
  ) else false end;
exception when invalid_text_representation then
  return false;
end
$$;
comment on function ringlog.names_numbers is
$$Whether it is a JSON object of names of whole numbers, as states of signals are.$$;
