create or replace function ringlog.record_mark(
  procedure text, number integer, "time" timestamptz, until timestamptz, text text, names text, withdrawn boolean
) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  caller constant record := ringlog.caller();
  before ringlog.mark;
  wanted text[] := string_to_array(nullif(names, ''), e'\n');
  unknown text;
begin
  if number is not null then
    -- corrections of one mark follow each other
    perform pg_advisory_xact_lock('ringlog.mark'::regclass::integer, number);
    select * into before from ringlog.mark as each where each.number = number order by each.version desc limit 1;
    if not found then
      raise exception '%: there is no mark %', procedure, number using errcode = 'undefined_object';
    end if;
    "time" := coalesce("time", before."time");
    until := coalesce(until, before.until);
    text := coalesce(text, before.text);
    wanted := coalesce(wanted, before.signals);
  end if;
  if length(btrim(text)) between 1 and 10000 is not true then
    raise exception '%: a mark must have a text, of at most 10000 characters', procedure using errcode = 'invalid_parameter_value';
  end if;
  if (isfinite("time") and coalesce(until >= "time" and isfinite(until), true)) is not true then
    raise exception '%: time % and until % must be finite times in this order', procedure, "time", until
      using errcode = 'invalid_parameter_value';
  end if;
  select each into unknown from unnest(wanted) as each
  where not exists (select from ringlog.signal as known where known.signal = each)
    and not exists (select from ringlog.signal_elsewhere as known where known.signal = each);
  if unknown is not null then
    raise exception '%: there is no signal ''%''', procedure, unknown using errcode = 'undefined_object';
  end if;
  insert into ringlog.mark as made (number, version, "time", until, text, signals, withdrawn, login, program)
  values (
    coalesce(number, nextval(pg_get_serial_sequence('ringlog.mark', 'number'))), coalesce(before.version, 0) + 1,
    "time", until, text, wanted, withdrawn, caller.login, caller.program
  )
  returning made.number into number;
  return number;
end
$$;
comment on function ringlog.record_mark is
$$Stores a mark (number null), or its next version, in which null means: as before. Returns its number.$$;
