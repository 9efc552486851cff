-- Trailing blanks and zero bytes of a column's values, which ASE does not store (Reference Manual: Building Blocks,
-- "Treatment of blanks", "Treatment of trailing zeros"). A trigger of the table removes them; its arguments are the
-- columns' numbers, which never change.

create or replace function tsql.strip_blanks() returns trigger
language plpgsql
as $$
declare
  target text;
  of_bytes boolean;
  value text;
  bytes bytea;
begin
  for index in 0 .. tg_nargs - 1 loop
    select attname, atttypid = 'bytea'::regtype into target, of_bytes
    from pg_attribute where attrelid = tg_relid and attnum = tg_argv[index]::smallint;
    if of_bytes then
      execute format('select ($1).%I', target) into bytes using new;
      if bytes like '\x5f2500'::bytea then
        -- one zero byte remains of a value of zeros
        bytes := coalesce(nullif(rtrim(bytes, '\x00'), ''), '\x00');
        new := jsonb_populate_record(new, jsonb_build_object(target, bytes));
      end if;
      continue;
    end if;
    execute format('select ($1).%I', target) into value using new;
    if value like '_% ' then
      -- one blank remains of a value of blanks
      value := coalesce(nullif(rtrim(value, ' '), ''), ' ');
      new := jsonb_populate_record(new, jsonb_build_object(target, value));
    end if;
  end loop;
  return new;
end
$$;
comment on function tsql.strip_blanks() is 'Removes trailing blanks, or zero bytes, of the columns'' values.';

create or replace function tsql.stripped_columns(target regclass) returns smallint[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(number::smallint), '{}')
  from pg_trigger
  cross join string_to_table(encode(tgargs, 'escape'), '\000') as number
  where tgrelid = target and tgname = 'T-SQL blanks' and number <> ''
$$;
comment on function tsql.stripped_columns(regclass) is
  'The columns of a table whose values lose the blanks at their ends, by their numbers.';

create or replace procedure tsql.watch_blanks(target text, stripped text[], stripped_before smallint[] default '{}')
language plpgsql
as $$
declare
  watched record;
begin
  if cardinality(stripped) + cardinality(stripped_before) = 0 then
    return;
  end if;
  select string_agg(attnum::text, ', ' order by attnum) as arguments,
    string_agg(format('new.%I like %s', attname,
      case when atttypid = 'bytea'::regtype then '''\x5f2500''::bytea' else '''_% ''' end), ' or ' order by attnum) as condition
  into watched
  from pg_attribute
  where attrelid = target::regclass and not attisdropped and atttypid in ('varchar'::regtype, 'bytea'::regtype)
    and (attname = any (stripped) or attnum = any (stripped_before));
  if watched.arguments is not null then
    execute format('create trigger "T-SQL blanks" before insert or update on %s for each row when (%s)'
      ' execute function tsql.strip_blanks(%s)', target, watched.condition, watched.arguments);
  end if;
end
$$;
comment on procedure tsql.watch_blanks(text, text[], smallint[]) is
  'Has the blanks, or zero bytes, at the ends of these columns'' values taken off.';
