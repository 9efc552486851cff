-- T-SQL's declarations of columns that PostgreSQL does not store: the name in its case and the type (varchar or
-- nvarchar, binary(n), time(n)). They are in the column's comment, as `T-SQL "ColB" varchar(20)`, which dumps and
-- renaming keep and dropping removes; the type is omitted if PostgreSQL's determines it; `as "tid"` after it names a
-- user type. The names of tables and constraints are in their comments too.

create or replace function tsql.stored_name(name text) returns text
language sql immutable strict parallel safe set search_path = pg_catalog, pg_temp
as $$
  select case when octet_length(lower(name)) <= 63 then lower(name) else (
    select left(lower(name), n) from generate_series(46, 1, -1) as n where octet_length(left(lower(name), n)) <= 46 limit 1
  ) || '~' || left(md5(lower(name)), 16) end
$$;
comment on function tsql.stored_name(text) is
'The name by which PostgreSQL has an object of T-SQL: in small letters, and one of more than 63 bytes with a digest at its end.';

create or replace function tsql.long_names(message text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  one record;
begin
  if message !~ '~[0-9a-f]{16}' then
    return message;
  end if;
  for one in
    select distinct replace(said.shown, '""', '"') as shown
    from pg_description
    cross join lateral substring(description from '^T-SQL "((?:[^"]|"")+)"') as said (shown)
    where description like 'T-SQL "%' and octet_length(said.shown) > 63
  loop
    message := replace(message, tsql.stored_name(one.shown), one.shown);
  end loop;
  return message;
end
$$;
comment on function tsql.long_names(text) is 'A message with the long names of objects in place of PostgreSQL''s names.';

create or replace function tsql.with_properties(comment text, before text) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select comment || case
    when before ~ '\n-- extended properties: \{.*\}$' then substring(before from '\n-- extended properties: \{.*\}$')
    when before <> '' and before not like 'T-SQL %' then
      E'\n-- extended properties: ' || jsonb_build_object('MS_Description', before)::text
    else ''
  end
$$;
comment on function tsql.with_properties(text, text) is
'A comment of ours with the extended properties that the comment before it has, in its last line.';

create or replace procedure tsql.declare_columns(target text, columns text[], declarations text[])
language plpgsql
as $$
declare
  declared record;
  said text;
begin
  for declared in select * from unnest(columns, declarations) as one (name, says)
  loop
    said := declared.says;
    if said not like '"%' then
      -- another type keeps the declared name
      select concat_ws(' ',
        coalesce(substring(col_description(attrelid, attnum) from '^T-SQL ("(?:[^"]|"")+")'), format('"%s"', replace(attname, '"', '""'))),
        said) into said
      from pg_attribute
      where attrelid = target::regclass and attname = declared.name;
    end if;
    execute format('comment on column %s.%I is %L', target, declared.name, (
      select tsql.with_properties('T-SQL ' || rtrim(said), col_description(attrelid, attnum))
      from pg_attribute where attrelid = target::regclass and attname = declared.name
    ));
  end loop;
  -- PostgreSQL sends no notification of a comment, and other gateways would use outdated declarations. A session's own
  -- tables concern no other session
  if exists (select from pg_class where oid = target::regclass and relpersistence <> 't') then
    notify ringlog_catalogue, 'columns';
  end if;
end
$$;

create or replace function tsql.fit_binaries() returns trigger
language plpgsql
as $$
declare
  target text;
  length integer;
  fills boolean;
  value bytea;
begin
  -- arguments for each column: the column, its length, whether shorter values are padded
  for index in 0 .. tg_nargs - 1 by 3 loop
    target := tg_argv[index];
    length := tg_argv[index + 1];
    fills := tg_argv[index + 2];
    execute format('select ($1).%I', target) into value using new;
    if octet_length(value) > length then
      perform tsql.fail(8152, format('String or binary data would be truncated in column ''%s''.', target));
    elsif fills and octet_length(value) < length then
      value := value || decode(repeat('00', length - octet_length(value)), 'hex');
      new := jsonb_populate_record(new, jsonb_build_object(target, '\x' || encode(value, 'hex')));
    end if;
  end loop;
  return new;
end
$$;
comment on function tsql.fit_binaries() is
  'Trigger for columns declared binary(n) and varbinary(n), whose length PostgreSQL does not store: fills values of '
  'binary(n) with zeros, and refuses longer ones with error 8152.';

create or replace procedure tsql.watch_binaries(target text)
language plpgsql
as $$
declare
  watched record;
begin
  select string_agg(format('%L, %L, %L', attname, of[2], of[1] = 'binary'), ', ' order by attnum) as arguments,
    string_agg(format('octet_length(new.%I) %s %s', attname, case of[1] when 'binary' then '<>' else '>' end, of[2]),
      ' or ' order by attnum) as condition
  into watched
  from pg_attribute,
    regexp_match(col_description(attrelid, attnum), '^T-SQL "(?:[^"]|"")+" (binary|varbinary)\((\d+)\)(?: as "|\n|$)') as of
  where attrelid = target::regclass and attnum > 0 and not attisdropped and of is not null;
  if watched.arguments is not null then
    execute format('create trigger "T-SQL binaries" before insert or update on %s for each row when (%s)'
      ' execute function tsql.fit_binaries(%s)', target, watched.condition, watched.arguments);
  end if;
end
$$;
comment on procedure tsql.watch_binaries(text) is
  'Creates the trigger for the declared lengths of a table''s binary columns.';

create or replace procedure tsql.declare_names(target text, named text, constraints text[])
language plpgsql
as $$
begin
  if named is not null then
    execute format('comment on table %s is %L', target, format('T-SQL "%s"', replace(named, '"', '""')));
  end if;
  for index in 1 .. cardinality(constraints) by 2 loop
    execute format('comment on constraint %I on %s is %L', constraints[index], target,
      format('T-SQL "%s"', replace(constraints[index + 1], '"', '""')));
  end loop;
end
$$;
comment on procedure tsql.declare_names(text, text, text[]) is
$$Stores the declared case of the names of a table (null: without capitals) and of its constraints, each by its name in
PostgreSQL and its declared name.$$;
