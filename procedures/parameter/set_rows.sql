create or replace function {procedure}(
  rows text, comment text default null, out changed_rows integer, out change bigint, out changed timestamptz
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s'
as $$
#variable_conflict use_variable
declare
  item record;
  unknown text;
  before {stored};
  wanted {stored};
  done record;
begin
  if rows is null or jsonb_typeof(rows::jsonb) <> 'array' then
    raise exception '%: rows must be a JSON array of objects', {name} using errcode = 'invalid_parameter_value';
  end if;
  changed_rows := 0;
  perform ringlog.lock_parameters();
  for item in
    select each.given, each.number
    from jsonb_array_elements(rows::jsonb) with ordinality as each (given, number)
    order by each.number
  loop
    if jsonb_typeof(item.given) <> 'object' then
      raise exception '%: row % is no JSON object', {name}, item.number using errcode = 'invalid_parameter_value';
    end if;
    select names.name into unknown
    from jsonb_object_keys(item.given) as names (name)
    where names.name <> all (array[{column_names}, 'version']::text[])
    limit 1;
    if found then
      raise exception '%: row % has %, which is no column', {name}, item.number, unknown
        using errcode = 'undefined_column';
    end if;
    wanted := null;
    {key_of_item}
    if not (row ({wanted_key}) is not null) then
      raise exception '%: row % lacks a part of its key', {name}, item.number using errcode = 'not_null_violation';
    end if;
    select stored.* into before from {stored} as stored where {key_matches_wanted} and upper_inf(stored.valid);
    if found then
      wanted := before;
    end if;
    {given_of_item}
    select stored_now.* into done
    from {store}(before, wanted, (item.given ->> 'version')::integer, comment) as stored_now;
    if done.change is distinct from before.change then
      changed_rows := changed_rows + 1;
      change := done.change;
      changed := done.changed;
    end if;
  end loop;
end
$$;
comment on function {procedure} is
$$Changes several rows as one change, all of them or none: a JSON array of objects, each with the row's key, the columns
that change (null sets null) and, optionally, the version that was read. Returns the number of changed rows, and number
and time of the change; null when nothing has changed. Errors: those of the procedure for one row, invalid JSON (22P02,
22023), names of no column (42703).$$;
grant execute on function {procedure} to parameter_writer;
