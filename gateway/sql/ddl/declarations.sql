-- T-SQL's declarations of columns that PostgreSQL does not store: the name in its case and the type (varchar or
-- nvarchar, binary(n), time(n)). They are in the column's comment, as `T-SQL "ColB" varchar(20)`, which dumps and
-- renaming keep and dropping removes; the type is omitted if PostgreSQL's determines it; `as "tid"` after it names a
-- user type. The names of tables and constraints are in their comments too.

create or replace function tsql.stored_name(name text)
returns text
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case when octet_length(lower(name)) <= 63 then lower(name) else (
    select left(lower(name), n) from generate_series(46, 1, -1) as n where octet_length(left(lower(name), n)) <= 46 limit 1
  ) || '~' || left(md5(lower(name)), 16) end
$$;
comment on function tsql.stored_name(text) is
'The name by which PostgreSQL has an object of T-SQL: in small letters, and one of more than 63 bytes with a digest at its end.';

create or replace function tsql.long_names(message text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
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

create or replace function tsql.with_properties(comment text, before text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
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
  for place in 1 .. cardinality(constraints) by 2 loop
    execute format('comment on constraint %I on %s is %L', constraints[place], target,
      format('T-SQL "%s"', replace(constraints[place + 1], '"', '""')));
  end loop;
end
$$;
comment on procedure tsql.declare_names(text, text, text[]) is
$$Stores the declared case of the names of a table (null: without capitals) and of its constraints, each by its name in
PostgreSQL and its declared name.$$;

create or replace function tsql.demand_table(target text, number integer)
returns regclass
language plpgsql
stable
as $$
begin
  if to_regclass(target) is null then
    perform tsql.fail(number, format(
      case number when 208 then 'Invalid object name ''%s''.'
        else 'Cannot find the object "%s" because it does not exist or you do not have permissions.' end,
      (parse_ident(target, false))[array_upper(parse_ident(target, false), 1)]));
  end if;
  return to_regclass(target);
end
$$;
comment on function tsql.demand_table(text, integer) is
'The table that a statement changes; the given error if it does not exist: each statement has its own.';

create or replace function tsql.has_column(of regclass, name text)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from pg_attribute where attrelid = of and attname = name and attnum > 0 and not attisdropped)
$$;
comment on function tsql.has_column(regclass, text) is 'Whether a table has a column of this name.';

create or replace procedure tsql.name_index(index_ regclass, named text)
language plpgsql
as $$
begin
  if obj_description(index_, 'pg_class') like 'T-SQL "%' or exists (
    select from pg_index
    join pg_class as indexes on indexes.oid = indexrelid
    join pg_class as tables on tables.oid = indrelid
    where indexrelid = index_ and indexes.relname <> concat(tables.relname, '.', named)
  ) then
    execute format('comment on index %s is %L', index_,
      tsql.with_properties(format('T-SQL "%s"', replace(named, '"', '""')), obj_description(index_, 'pg_class')));
  end if;
end
$$;
comment on procedure tsql.name_index(regclass, text) is
'Keeps the name of an index in its comment, if PostgreSQL has it in other letters or with a digest.';

create or replace procedure tsql.create_index(
  definition text, target text, index_ text, columns text[], missing integer, named text
)
language plpgsql
as $$
declare
  of constant regclass := tsql.demand_table(target, missing);
  own constant name := (select relname from pg_class where oid = of);
  name constant name := (parse_ident(index_, false))[1];
  made regclass;
begin
  if exists (
    select from pg_class where relname = name
      and relnamespace = (select relnamespace from pg_class as tables where tables.oid = of)
  ) then
    perform tsql.fail(1913, format(
      'The operation failed because an index or statistics with name ''%s'' already exists on table ''%s''.',
      named, own));
  end if;
  for place in 1 .. cardinality(columns) loop
    if not tsql.has_column(of, columns[place]) then
      perform tsql.fail(1911, format('Column name ''%s'' does not exist in the target table or view.', columns[place]));
    elsif columns[place] = any (columns[:place - 1]) then
      perform tsql.fail(1909, format('Cannot use duplicate column names in index. Column name ''%s'' listed more than once.',
        columns[place]));
    end if;
  end loop;
  execute definition;
  made := (
    select oid from pg_class
    where relname = name and relnamespace = (select relnamespace from pg_class as tables where tables.oid = of)
  );
  call tsql.name_index(made, named);
end
$$;
comment on procedure tsql.create_index(text, text, text, text[], integer, text) is
$$Runs a CREATE INDEX. index_, named: its names in PostgreSQL and T-SQL; columns: the columns of its list. Errors: no such table (missing) or
column (1911), a column twice (1909), the table has an index of this name (1913).$$;

create or replace procedure tsql.truncate_table(target text, missing integer)
language plpgsql
as $$
begin
  perform tsql.demand_table(target, missing);
  execute format('truncate table only %s restart identity', target);
end
$$;
comment on procedure tsql.truncate_table(text, integer) is 'Runs a TRUNCATE TABLE. Error: no such table (missing).';

create or replace procedure tsql.demand_referenced(tables text[], columns text[])
language plpgsql
as $$
begin
  for place in 1 .. cardinality(tables) loop
    if to_regclass(tables[place]) is null then
      perform tsql.fail(1767, format('Foreign key references invalid table ''%s''.',
        array_to_string(parse_ident(tables[place], false), '.')));
    elsif columns[place] is not null and not tsql.has_column(tables[place]::regclass, columns[place]) then
      perform tsql.fail(1770, format('Foreign key references invalid column ''%s'' in referenced table ''%s''.',
        columns[place], array_to_string(parse_ident(tables[place], false), '.')));
    end if;
  end loop;
end
$$;
comment on procedure tsql.demand_referenced(text[], text[]) is
$$Checks the tables and columns (null: the primary key's) that foreign keys refer to. Errors: no such table (1767) or column
(1770).$$;

create or replace procedure tsql.define_referring(definition text, target text)
language plpgsql
as $$
declare
  because text;
  referring text;
  changed text;
begin
  loop
    begin
      execute definition;
      return;
    exception when datatype_mismatch then
      get stacked diagnostics because = pg_exception_detail;
      referring := substring(because from '^Key columns "(.*)" of the referencing table and ".*" of the referenced table are of '
        'incompatible types: numeric and bigint\.$');
      if referring is null then
        raise;
      end if;
      if exists (
        select from pg_attribute where attrelid = to_regclass(target) and attname = referring and (atttypmod - 4) & 2047 = 0
      ) then
        execute format('alter table %s alter column %I type bigint', target, referring);
        continue;
      end if;
      changed := regexp_replace(definition,
        format('([(,] ?"%s") numeric\(\d+, ?0\)', regexp_replace(replace(referring, '"', '""'), '(\W)', '\\\1', 'g')), '\1 bigint');
      if changed = definition then
        raise;
      end if;
      definition := changed;
    end;
  end loop;
end
$$;
comment on procedure tsql.define_referring(text, text) is
$$Runs the definition of a table or of a change of one. A numeric(p, 0) that refers to a numeric(p, 0) identity column becomes a
bigint, as that is: PostgreSQL has no foreign keys between the two.$$;

create or replace function tsql.tell_digits(finest text)
returns void
language plpgsql
as $$
begin
  if finest is not null then
    raise notice '%', format('Six digits of a second are kept of %s: a seventh is rounded.', finest);
  end if;
end
$$;
comment on function tsql.tell_digits(text) is
'Tells of new columns that are declared with seven digits of a second.';

drop procedure if exists tsql.create_table(text, text, text[], text[], text, text[], text[], text[], text[]);
create or replace procedure tsql.create_table(
  definition text, target text, columns text[], declarations text[], named text default null,
  constraints text[] default '{}', stripped text[] default '{}',
  referenced text[] default '{}', referenced_columns text[] default '{}', finest text default null
)
language plpgsql
as $$
begin
  call tsql.demand_referenced(referenced, referenced_columns);
  call tsql.define_referring(definition, target);
  call tsql.declare_columns(target, columns, declarations);
  call tsql.bind_new_columns(target, columns, declarations);
  call tsql.declare_names(target, named, constraints);
  call tsql.watch_binaries(target);
  call tsql.watch_rowversions(target);
  call tsql.watch_blanks(target, stripped);
  perform tsql.tell_digits(finest);
end
$$;
comment on procedure tsql.create_table(text, text, text[], text[], text, text[], text[], text[], text[], text) is
$$Runs a CREATE TABLE and stores the declarations of its columns that PostgreSQL does not. stripped: columns whose values lose
blanks at their ends; referenced and referenced_columns: the tables and columns of its foreign keys; finest: as in
tsql.tell_digits.$$;

create or replace function tsql.view_digest(view oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
set quote_all_identifiers = off
as $$ select md5(pg_get_viewdef(view)) $$;
comment on function tsql.view_digest(oid) is
  'A digest of a view''s query in PostgreSQL''s form, independent of the session''s settings.';

create or replace function tsql.view_source(view oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select regexp_replace(said[3], '\n-- extended properties: \{.*\}$', '')
  from regexp_match(obj_description(view, 'pg_class'), '^T-SQL view of PostgreSQL (\d+), ([0-9a-f]{32})\n(.*)$') as said
  -- another version of PostgreSQL may write the same query differently
  where said[1]::integer <> current_setting('server_version_num')::integer / 10000
    or said[2] = tsql.view_digest(view)
$$;
comment on function tsql.view_source(oid) is
$$The T-SQL of a view, from its comment; null for a view of another origin, or if the view or its comment was changed since.$$;

drop procedure if exists tsql.create_view(text, text, text[], text[]);

create or replace function tsql.view_origins(view regclass)
returns table (number integer, of_table oid, of_column smallint)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  -- in the view's rule its own columns follow those of subqueries
  select distinct on (a.attnum) a.attnum, b.attrelid, b.attnum
  from pg_rewrite r
  cross join regexp_matches(r.ev_action::text,
    ':resno (\d+) :resname (\S+) :ressortgroupref \d+ :resorigtbl (\d+) :resorigcol (\d+) :resjunk false', 'g')
    with ordinality as entries (found, place)
  join pg_attribute a on a.attrelid = view and a.attnum = found[1]::integer
    and (a.attname = found[2] or found[2] like '%\\%')
  join pg_attribute b on b.attrelid = found[3]::oid and b.attnum = found[4]::smallint
    and (b.atttypid, b.atttypmod) = (a.atttypid, a.atttypmod)
  where r.ev_class = view and r.ev_type = '1'
  order by a.attnum, place desc
$$;
comment on function tsql.view_origins(regclass) is
  'The columns of tables and other views from which the columns of a view come, by position.';

create or replace procedure tsql.declare_view(target text, columns text[], declarations text[])
language plpgsql
as $$
declare
  names text[];
  says text[];
begin
  select array_agg(a.attname), array_agg(concat_ws(' ',
    coalesce(given.says, case when b.attname = a.attname then said[1] end, format('"%s"', replace(a.attname, '"', '""'))),
    nullif(said[2], '')))
  into names, says
  from pg_attribute a
  left join tsql.view_origins(target::regclass) as o on o.number = a.attnum
  left join pg_attribute b on b.attrelid = o.of_table and b.attnum = o.of_column
  left join lateral regexp_match(col_description(o.of_table, o.of_column), '^T-SQL ("(?:[^"]|"")+") ?([^\n]*)') as said on true
  left join unnest(columns, declarations) as given (name, says) on given.name = a.attname
  where a.attrelid = target::regclass and a.attnum > 0 and (given.says is not null or said is not null);
  call tsql.declare_columns(target, coalesce(names, '{}'), coalesce(says, '{}'));
end
$$;
comment on procedure tsql.declare_view(text, text[], text[]) is
$$Stores the declarations of a view's columns: the names in its definition, and the declarations of the tables' columns from
which they come.$$;

create or replace procedure tsql.make_view_again(definition text, target text)
language plpgsql
as $$
declare
  held record;
  rights text[] := '{}';
  columns name[] := '{}';
  because text;
begin
  for held in
    select given.*, ''::name as of_column
    from pg_class as views
    cross join aclexplode(views.relacl) as given
    where views.oid = target::regclass and given.grantee <> views.relowner
    union all
    select given.*, attributes.attname
    from pg_attribute as attributes
    cross join aclexplode(attributes.attacl) as given
    where attributes.attrelid = target::regclass
  loop
    rights := rights || format('grant %s%s on %s to %s%s',
      held.privilege_type,
      case when held.of_column <> '' then format(' (%I)', held.of_column) else '' end,
      target,
      case when held.grantee = 0 then 'public' else held.grantee::regrole::text end,
      case when held.is_grantable then ' with grant option' else '' end);
    columns := columns || held.of_column;
  end loop;
  begin
    execute 'drop view ' || target;
  exception when dependent_objects_still_exist then
    get stacked diagnostics because = pg_exception_detail;
    perform tsql.raise(3729, 16, 1, format('Cannot ALTER ''%s'' because it is being referenced by object ''%s''.',
      array_to_string(parse_ident(target, false), '.'), substring(because from '^\w+ (.+?) depends on')));
  end;
  execute definition;
  for place in 1 .. cardinality(rights) loop
    -- rights on dropped columns are dropped too
    if columns[place] = '' or exists (
      select from pg_attribute where attrelid = target::regclass and attname = columns[place]
    ) then
      execute rights[place];
    end if;
  end loop;
end
$$;
comment on procedure tsql.make_view_again(text, text) is
$$Replaces a view's query by one with other columns; PostgreSQL's own replacement can only append columns. Rights are kept.
Error: another view uses it (3729).$$;

create or replace procedure tsql.create_view(
  action text, definition text, target text, columns text[], declarations text[], source text
)
language plpgsql
as $$
begin
  if action = 'alter' and to_regclass(target) is null then
    perform tsql.raise(208, 16, 6, format('Invalid object name ''%s''.', array_to_string(parse_ident(target, false), '.')));
  end if;
  begin
    execute definition;
  exception when invalid_table_definition then
    if action = 'create' then
      raise;
    end if;
    call tsql.make_view_again(definition, target);
  end;
  call tsql.declare_view(target, columns, declarations);
  execute format('comment on view %s is %L', target, tsql.with_properties(
    format(E'T-SQL view of PostgreSQL %s, %s\n%s',
      current_setting('server_version_num')::integer / 10000, tsql.view_digest(target::regclass), source),
    obj_description(target::regclass, 'pg_class')));
end
$$;
comment on procedure tsql.create_view(text, text, text, text[], text[], text) is
$$Runs a CREATE VIEW, and stores its T-SQL and the case of its columns' names. action: create, alter or create or alter.
Error: there is nothing to alter (208).$$;

create or replace function tsql.shown_constraint(of_constraint oid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    replace(substring(obj_description(oid, 'pg_constraint') from '^T-SQL "((?:[^"]|"")+)"'), '""', '"'), conname)
  from pg_constraint
  where oid = of_constraint
$$;
comment on function tsql.shown_constraint(oid) is 'The name of a constraint in the case in which it was declared.';

create or replace function tsql.named_default(value anyelement, name text) returns anyelement
language sql immutable parallel safe
as $$ select value $$;
comment on function tsql.named_default(anyelement, text) is 'A default with its name, which PostgreSQL does not store.';

create or replace function tsql.defaults_of(target regclass)
returns table (column_name name, name text, is_named boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select a.attname, coalesce(replace(said.own, '''''', ''''), format('DF_%s_%s', c.relname, a.attname)), said.own is not null
  from pg_attrdef d
  join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum and a.attgenerated = ''
  join pg_class c on c.oid = d.adrelid
  cross join substring(pg_get_expr(d.adbin, d.adrelid)
    from '^tsql\.named_default\(.*, ''((?:[^'']|'''')*)''::text\)$') as said (own)
  where d.adrelid = target
$$;
comment on function tsql.defaults_of(regclass) is 'The defaults of a table''s columns, by their names.';

create or replace function tsql.dependents(target regclass, of_column name, without text[])
returns table (kind text, name text, holds_type boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with depending as (
    select d.classid, d.objid, d.objsubid, a.attnum
    from pg_attribute a
    join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = a.attrelid and d.refobjsubid = a.attnum
    where a.attrelid = target and a.attname = of_column
  )
  select 'object', tsql.shown_constraint(c.oid), false
  from depending as d
  join pg_constraint c on d.classid = 'pg_constraint'::regclass and c.oid = d.objid
  where c.contype <> 'n' and (c.conrelid <> target or c.conname <> all (without))
  union all
  select 'index', regexp_replace(i.relname, '^.*\.', ''), false
  from depending as d
  join pg_class i on d.classid = 'pg_class'::regclass and i.oid = d.objid and i.relkind in ('i', 'I')
  union all
  select 'column', g.attname, true
  from depending as d
  left join pg_attrdef of on d.classid = 'pg_attrdef'::regclass and of.oid = d.objid
  join pg_attribute g on g.attrelid = target and g.attnum <> d.attnum and g.attgenerated <> ''
    and g.attnum = case when d.classid = 'pg_class'::regclass and d.objid = target then d.objsubid else of.adnum end
  union all
  select 'object', v.relname, true
  from depending as d
  join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
  join pg_class v on v.oid = r.ev_class
  order by 1, 2
$$;
comment on function tsql.dependents(regclass, name, text[]) is
$$The objects that prevent dropping a column, as SQL Server's error 5074 names them: constraints except those in `without`,
indexes, computed columns, views. holds_type: the object also prevents another type in PostgreSQL.$$;

create or replace function tsql.declared_name(of regclass, of_column name) returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(substring(col_description(of, attnum) from '^T-SQL "(?:[^"]|"")+" ?((?:(?! ?as ")[^\n])*)'), '')
  from pg_attribute
  where attrelid = of and attname = of_column
$$;
comment on function tsql.declared_name(regclass, name) is
  'The declared type of a column; empty if PostgreSQL''s type determines it.';

create or replace function tsql.holding_alteration(
  of regclass, of_column name, new_type text, new_name text, nullable boolean
)
returns table (kind text, name text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with declared as (
    select a.*, tsql.declared_name(of, of_column) as old_name
    from pg_attribute a
    where a.attrelid = of and a.attname = of_column
  ), compared as (
    select attnum, attnotnull = nullable as turns_nullable,
      atttypid = to_regtype(new_type)
        and replace(split_part(old_name, '(', 1), 'decimal', '') = replace(split_part(new_name, '(', 1), 'decimal', '')
        as is_same,
      atttypid in ('varchar'::regtype, 'bytea'::regtype) and new_name !~ '^(binary|image)' as has_length,
      coalesce(substring(coalesce(nullif(new_name, ''), new_type) from '\((\d+)\)')::integer, 2147483647) as new_length,
      coalesce(substring(coalesce(nullif(old_name, ''), format_type(atttypid, atttypmod)) from '\((\d+)\)')::integer,
        2147483647) as old_length,
      format_type(atttypid, atttypmod) as old_type
    from declared
  ), depending as (
    select d.classid, d.objid
    from compared
    join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = of and d.refobjsubid = attnum
  )
  select held.kind, held.name
  from compared
  cross join lateral (
    select 'object', d.name, not is_same
    from tsql.defaults_of(of) as d
    where d.column_name = of_column
    union all
    select 'object', tsql.shown_constraint(c.oid), case c.contype
      when 'c' then not (is_same and has_length)
      when 'u' then not (is_same and has_length) or turns_nullable
      else true
    end
    from depending
    join pg_constraint c on depending.classid = 'pg_constraint'::regclass and c.oid = depending.objid and c.contype <> 'n'
    union all
    select 'index', regexp_replace(i.relname, '^.*\.', ''),
      not (is_same and has_length) or turns_nullable or new_length < old_length
    from depending
    join pg_class i on depending.classid = 'pg_class'::regclass and i.oid = depending.objid and i.relkind in ('i', 'I')
  ) as held (kind, name, holds)
  where holds and (not is_same or turns_nullable or new_length <> old_length or has_length is false and old_type <> new_type)
  order by 1 desc, 2
$$;
comment on function tsql.holding_alteration(regclass, name, text, text, boolean) is
$$The objects that prevent altering a column, as SQL Server's error 5074 names them ("ALTER TABLE", ALTER COLUMN): a default
for another type; keys and foreign keys; checks, except for another length of a varchar, nvarchar or varbinary; unique
constraints and indexes, except for a greater length of these. new_type is PostgreSQL's type, new_name the declared one if it
differs.$$;

create or replace procedure tsql.check_alteration(
  target text, altered text, dropped text[], if_exists boolean, without text[], key text[], with_defaults boolean,
  referring text[], new_type text, new_name text, nullable boolean
)
language plpgsql
as $$
declare
  of constant regclass := tsql.demand_table(target, 4902);
  own name := (parse_ident(target, false))[array_upper(parse_ident(target, false), 1)];
  of_column text;
  found record;
begin
  foreach of_column in array referring loop
    if not tsql.has_column(of, of_column) then
      perform tsql.fail(1769, format('Foreign key references invalid column ''%s'' in referencing table ''%s''.', of_column, own));
    end if;
  end loop;
  foreach of_column in array dropped || altered loop
    continue when of_column is null;
    if not if_exists and not tsql.has_column(of, of_column) then
      perform tsql.fail(4924, format('ALTER TABLE %s COLUMN failed because column ''%s'' does not exist in table ''%s''.',
        case when of_column = altered then 'ALTER' else 'DROP' end, of_column, own));
    end if;
    for found in
      select * from tsql.defaults_of(of) as one
      where one.column_name = any (dropped) and one.column_name = of_column and not with_defaults
        and lower(one.name) <> all (without)
    loop
      perform tsql.fail(5074, format('The object ''%s'' is dependent on column ''%s''.', found.name, of_column));
    end loop;
    -- PostgreSQL would drop constraints and indexes with the column, and convert them to another type
    for found in
      select * from tsql.dependents(of, of_column, without) as one
      where of_column = any (dropped) or one.holds_type
    loop
      perform tsql.fail(5074, format('The %s ''%s'' is dependent on column ''%s''.', found.kind, found.name, of_column));
    end loop;
  end loop;
  if altered in (select name from tsql.rowversions_of(of)) then
    perform tsql.fail(4928, format('Cannot alter column ''%s'' because it is ''timestamp''.', altered));
  end if;
  if new_type is not null then
    for found in select * from tsql.holding_alteration(of, altered, new_type, new_name, nullable) loop
      perform tsql.fail(5074, format('The %s ''%s'' is dependent on column ''%s''.', found.kind, found.name, altered));
    end loop;
  end if;
  for found in
    select tsql.shown_constraint(c.oid) as name, tsql.shown_constraint(f.oid) as referring, f.conrelid
    from pg_constraint c
    join pg_constraint f on f.contype = 'f' and f.confrelid = of and f.conindid = c.conindid
    where c.conrelid = of and c.contype in ('p', 'u') and c.conname = any (without)
      and not (f.conrelid = of and f.conname = any (without))
  loop
    perform tsql.fail(3725, format('The constraint ''%s'' is being referenced by table ''%s'', foreign key constraint ''%s''.',
      found.name, (select relname from pg_class where oid = found.conrelid), found.referring));
  end loop;
  if exists (
    select from pg_attribute where attrelid = of and attname = any (key) and not attnotnull and not attisdropped
  ) then
    perform tsql.fail(8111, format('Cannot define PRIMARY KEY constraint on nullable column in table ''%s''.', own));
  end if;
end
$$;
comment on procedure tsql.check_alteration(
  text, text, text[], boolean, text[], text[], boolean, text[], text, text, boolean
) is
$$Refuses alterations that PostgreSQL allows and SQL Server does not: dropping or altering a column with dependent objects, and
a primary key of nullable columns. Errors: no such table (4902) or column (4924), an object depends on the column (5074), a
foreign key refers to a constraint (3725), a column of the key is nullable (8111), a column of a foreign key does not exist
(1769).$$;

drop procedure if exists tsql.alter_table(text, text, text[], text[], text, text[]);
drop procedure if exists tsql.alter_table(text, text, text[], text[], text, text[], text, text[], boolean, text[], text[]);
drop procedure if exists tsql.alter_table(
  text, text, text[], text[], text, text[], text, text[], boolean, text[], text[], boolean);
drop procedure if exists tsql.alter_table(
  text, text, text[], text[], text, text[], text, text[], boolean, text[], text[], boolean, text[]);
drop procedure if exists tsql.alter_table(
  text, text, text[], text[], text, text[], text, text[], boolean, text[], text[], boolean, text[], text[], text[], text[],
  boolean);

drop procedure if exists tsql.alter_table(
  text, text, text[], text[], text, text[], text, text[], boolean, text[], text[], boolean, text[], text[], text[], text[],
  boolean, text, boolean
);
create or replace procedure tsql.alter_table(
  definition text, target text, columns text[], declarations text[], named text default null,
  constraints text[] default '{}', altered text default null, dropped text[] default '{}', if_exists boolean default false,
  without text[] default '{}', key text[] default '{}', with_defaults boolean default false, stripped text[] default '{}',
  referring text[] default '{}', referenced text[] default '{}', referenced_columns text[] default '{}',
  takes_nulls boolean default false, altered_type text default null, altered_nullable boolean default true,
  finest text default null
)
language plpgsql
as $$
declare
  found record;
  without_value text;
  stripped_before smallint[] := tsql.stripped_columns(to_regclass(target));
begin
  call tsql.check_alteration(target, altered, dropped, if_exists, without, key, with_defaults, referring, altered_type,
    declarations[1], altered_nullable);
  call tsql.demand_referenced(referenced, referenced_columns);
  for found in select * from tsql.defaults_of(target::regclass) as one where lower(one.name) = any (without) loop
    definition := regexp_replace(definition,
      format('drop constraint (if exists )?"%s"', regexp_replace(replace(lower(found.name), '"', '""'), '(\W)', '\\\1', 'g')),
      replace(format('alter column "%s" drop default', replace(found.column_name, '"', '""')), '\', '\\'));
  end loop;
  -- PostgreSQL neither drops nor changes a column in a trigger's condition
  if exists (select from pg_trigger where tgrelid = to_regclass(target) and tgname = 'T-SQL binaries') then
    execute format('drop trigger "T-SQL binaries" on %s', target);
  end if;
  call tsql.leave_rowversions(target);
  if stripped_before <> '{}' then
    execute format('drop trigger "T-SQL blanks" on %s', target);
  end if;
  begin
    call tsql.define_referring(definition, target);
  exception when not_null_violation then
    get stacked diagnostics without_value = column_name;
    if altered is not null then
      raise;
    end if;
    perform tsql.fail(4901, format(
      'ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified, or the '
      'column being added is an identity or timestamp column, or alternatively if none of the previous conditions are '
      'satisfied the table must be empty to allow addition of this column. Column ''%s'' cannot be added to non-empty '
      'table ''%s'' because it does not satisfy these conditions.',
      without_value, (select relname from pg_class where oid = target::regclass)));
  end;
  if takes_nulls and not exists (
    select from pg_attribute where attrelid = target::regclass and attname = altered and attidentity <> ''
  ) then
    execute format('alter table %s alter column %I drop not null', target, altered);
  end if;
  if (select count(*) from pg_attribute where attrelid = target::regclass and attidentity <> '' and not attisdropped) > 1 then
    perform tsql.fail(2744, format(
      'Multiple identity columns specified for table ''%s''. Only one identity column per table is allowed.',
      (select relname from pg_class where oid = target::regclass)));
  end if;
  call tsql.declare_columns(target, columns, declarations);
  call tsql.bind_new_columns(target, columns, declarations);
  call tsql.declare_names(target, named, constraints);
  call tsql.watch_binaries(target);
  call tsql.watch_rowversions(target);
  call tsql.watch_blanks(target, stripped, stripped_before);
  perform tsql.tell_digits(finest);
end
$$;
comment on procedure tsql.alter_table(
  text, text, text[], text[], text, text[], text, text[], boolean, text[], text[], boolean, text[], text[], text[], text[],
  boolean, text, boolean, text
) is
$$Runs an ALTER TABLE and stores the declarations of the columns that it adds or changes. altered: the column that gets
another type; dropped (if_exists: missing ones are no error) and without: the columns and constraints that are dropped; key:
the columns of an added primary key; with_defaults: a column is dropped with its default; stripped: added columns whose values
lose blanks at their ends; referring: columns of added foreign keys; referenced and referenced_columns: their targets;
takes_nulls: the altered column does, but for an identity column; altered_type and altered_nullable: what SQL Server asks whether
something holds the column; finest: as in tsql.tell_digits.$$;

create or replace procedure tsql.switch_constraints(target text, names text[], enabled boolean, check_existing boolean)
language plpgsql
as $$
declare
  of constant regclass := tsql.demand_table(target, 4902);
  missing text;
  one record;
  definition text;
  comment_ text;
begin
  select listed into missing from unnest(names) as listed
  where not exists (
    select from pg_constraint where conrelid = of and conname = listed and contype in ('c', 'f') and conname not like 'T-SQL rule %'
  );
  if missing is not null then
    perform tsql.fail(4917, format('Constraint ''%s'' does not exist.', missing));
  end if;
  for one in
    select oid, conname, contype, convalidated, coalesce((to_jsonb(held) ->> 'conenforced')::boolean, true) as is_enforced
    from pg_constraint as held
    where conrelid = of and contype in ('c', 'f') and conname not like 'T-SQL rule %'
      and (names = '{}' or conname = any (names))
    order by conname
  loop
    if not enabled and current_setting('server_version_num')::integer < 180000 then
      perform tsql.fail(102, '''nocheck constraint'' is not supported: PostgreSQL 18 is the first that has it.');
    end if;
    continue when one.is_enforced = enabled and (not enabled or not check_existing or one.convalidated);
    if enabled and one.is_enforced then
      execute format('alter table %s validate constraint %I', of, one.conname);
      continue;
    end if;
    -- PostgreSQL can neither disable a check nor add a constraint without checking the existing rows
    definition := regexp_replace(pg_get_constraintdef(one.oid), '(?: NOT (?:VALID|ENFORCED))+$', '');
    comment_ := obj_description(one.oid, 'pg_constraint');
    execute format('alter table %s drop constraint %I', of, one.conname);
    execute format('alter table %s add constraint %I %s%s', of, one.conname, definition,
      case when not enabled then ' not enforced' when not check_existing then ' not valid' else '' end);
    execute format('comment on constraint %I on %s is %L', one.conname, of, comment_);
  end loop;
end
$$;
comment on procedure tsql.switch_constraints(text, text[], boolean, boolean) is
$$Enables or disables checks and foreign keys of a table, those of these names or all ('{}'). check_existing: the rows that are
there are checked when one is enabled. Errors: no such table (4902) or constraint (4917).$$;
