-- What T-SQL declares of columns and PostgreSQL does not keep: the name in its case and the type (varchar or nvarchar,
-- binary(n), time(n)). It stands in the column's comment, so it goes where the column goes: into dumps, to new
-- names, away: `T-SQL "ColB" varchar(20)`, where the type is left out when PostgreSQL's says as much. The names of tables and
-- constraints stand in their comments too.

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
      -- another type: the name as it was declared
      select concat_ws(' ',
        coalesce(substring(col_description(attrelid, attnum) from '^T-SQL ("(?:[^"]|"")+")'), format('"%s"', replace(attname, '"', '""'))),
        said) into said
      from pg_attribute
      where attrelid = target::regclass and attname = declared.name;
    end if;
    execute format('comment on column %s.%I is %L', target, declared.name, 'T-SQL ' || rtrim(said));
  end loop;
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
  -- the column, its length, and whether shorter values are filled; and the next column
  for place in 0 .. tg_nargs - 1 by 3 loop
    target := tg_argv[place];
    length := tg_argv[place + 1];
    fills := tg_argv[place + 2];
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
  'Of columns declared binary(n) and varbinary(n), which PostgreSQL keeps no length of: fills values with zeros, '
  'refuses longer ones with error 8152.';

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
    regexp_match(col_description(attrelid, attnum), '^T-SQL "(?:[^"]|"")+" (binary|varbinary)\((\d+)\)$') as of
  where attrelid = target::regclass and attnum > 0 and not attisdropped and of is not null;
  if watched.arguments is not null then
    execute format('create trigger "T-SQL binaries" before insert or update on %s for each row when (%s)'
      ' execute function tsql.fit_binaries(%s)', target, watched.condition, watched.arguments);
  end if;
end
$$;
comment on procedure tsql.watch_binaries(text) is
  'Has the declared lengths of a table''s binary columns kept.';

create or replace procedure tsql.declare_names(target text, named text, constraints text[])
language plpgsql
as $$
begin
  if named is not null then
    execute format('comment on table %s is %L', target, format('T-SQL "%s"', replace(named, '"', '""')));
  end if;
  for place in 1 .. cardinality(constraints) by 2 loop
    execute format('comment on constraint %I on %s is %L', constraints[place], target,
      format('T-SQL "%s"', replace(constraints[place + 1], '"', '""')));
  end loop;
end
$$;
comment on procedure tsql.declare_names(text, text, text[]) is
$$Keeps the case in which a table (null: it has no capitals) and constraints of it are named: of each constraint its name
in PostgreSQL, and as it is shown.$$;

-- of an older version
drop procedure if exists tsql.create_table(text, text, text[], text[]);
drop procedure if exists tsql.alter_table(text, text, text[], text[]);

create or replace procedure tsql.create_table(
  definition text, target text, columns text[], declarations text[], named text default null, constraints text[] default '{}'
)
language plpgsql
as $$
begin
  execute definition;
  call tsql.declare_columns(target, columns, declarations);
  call tsql.declare_names(target, named, constraints);
  call tsql.watch_binaries(target);
end
$$;
comment on procedure tsql.create_table(text, text, text[], text[], text, text[]) is
  'Runs a CREATE TABLE and keeps what is declared of its columns beyond what PostgreSQL keeps.';

create or replace function tsql.view_digest(view oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
set quote_all_identifiers = off
as $$ select md5(pg_get_viewdef(view)) $$;
comment on function tsql.view_digest(oid) is
  'Of the query of a view as PostgreSQL has it, whatever the session has set.';

create or replace function tsql.view_source(view oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select said[3]
  from regexp_match(obj_description(view, 'pg_class'), '^T-SQL view of PostgreSQL (\d+), ([0-9a-f]{32})\n(.*)$') as said
  -- another version may write the same query in other words
  where said[1]::integer <> current_setting('server_version_num')::integer / 10000
    or said[2] = tsql.view_digest(view)
$$;
comment on function tsql.view_source(oid) is
$$The T-SQL that a view was made of, which is its comment; null when it was not, or when somebody has changed the view or its
comment since.$$;

drop procedure if exists tsql.create_view(text, text, text[], text[]);

create or replace procedure tsql.create_view(
  action text, definition text, target text, columns text[], declarations text[], source text
)
language plpgsql
as $$
begin
  if action = 'alter' and to_regclass(target) is null then
    perform tsql.raise(208, 16, 6, format('Invalid object name ''%s''.', array_to_string(parse_ident(target, false), '.')));
  end if;
  execute definition;
  call tsql.declare_columns(target, columns, declarations);
  execute format('comment on view %s is %L', target, format(E'T-SQL view of PostgreSQL %s, %s\n%s',
    current_setting('server_version_num')::integer / 10000, tsql.view_digest(target::regclass), source));
end
$$;
comment on procedure tsql.create_view(text, text, text, text[], text[], text) is
$$Runs a CREATE VIEW, and keeps its T-SQL and the case in which its columns are named: action is create, alter or create or
alter. Error: there is nothing to alter (208).$$;

create or replace procedure tsql.alter_table(
  definition text, target text, columns text[], declarations text[], named text default null, constraints text[] default '{}'
)
language plpgsql
as $$
begin
  -- a column that a trigger's condition names can be neither dropped nor changed
  if exists (select from pg_trigger where tgrelid = to_regclass(target) and tgname = 'T-SQL binaries') then
    execute format('drop trigger "T-SQL binaries" on %s', target);
  end if;
  execute definition;
  call tsql.declare_columns(target, columns, declarations);
  call tsql.declare_names(target, named, constraints);
  call tsql.watch_binaries(target);
end
$$;
comment on procedure tsql.alter_table(text, text, text[], text[], text, text[]) is
  'Runs an ALTER TABLE and keeps what is declared of the columns that it adds or changes.';
