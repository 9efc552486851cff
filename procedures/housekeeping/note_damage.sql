create or replace function ringlog.note_damage(work text, table_name text, message text) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  sentence constant text := format(
    '%s of %s failed%s: %s', work, table_name, ' at ' || ringlog.damaged_place(message), message
  );
begin
  insert into ringlog.damage as known (work, table_name, message, since)
  values (work, table_name, sentence, now())
  on conflict on constraint damage_pkey do update set message = excluded.message;
  return sentence;
end
$$;
comment on function ringlog.note_damage is
$$Records that a step of housekeeping has failed for a table, with PostgreSQL's message. Returns the message with the
damaged place.$$;
