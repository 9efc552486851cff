-- User types, rules and defaults.
--
-- A user type is a domain that no column has: columns have its system type, and their comments name it (`T-SQL "ColB"
-- varchar(11) as "tid"`). The domain's own comment is its declaration (`T-SQL "tid" varchar(11) not null`); its check
-- and default are the rule and the default that are bound to it. A rule is a function of a value, a default a function
-- without arguments, so PostgreSQL refuses to drop them while they are bound. The functions run with the rights of
-- their callers.

create or replace function tsql.user_type(type_ text) returns oid
language sql stable
as $$
  select pg_type.oid
  from pg_catalog.pg_type
  where typnamespace = any (array[pg_catalog.to_regnamespace(pg_catalog.quote_ident(current_schema())),
      pg_catalog.to_regnamespace(pg_catalog.quote_ident(tsql.database_of(current_schema())))]) and typtype = 'd'
    and typname = lower(type_) and pg_catalog.obj_description(pg_type.oid, 'pg_type') like 'T-SQL "%'
$$;
comment on function tsql.user_type(text) is 'The domain of a user type of the current database.';

create or replace function tsql.columns_of_type(type_ text) returns table (relation regclass, column_name name)
language sql stable
as $$
  select attrelid::regclass, attname
  from pg_catalog.pg_description
  join pg_catalog.pg_attribute on attrelid = objoid and attnum = objsubid and not attisdropped
  join pg_catalog.pg_class on pg_class.oid = attrelid
  where classoid = 'pg_catalog.pg_class'::regclass
    and relnamespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident(current_schema()))
    and lower(replace(substring(description from '^T-SQL "(?:[^"]|"")+"[^"\n]* as "((?:[^"]|"")+)"'), '""', '"')) = lower(type_)
$$;
comment on function tsql.columns_of_type(text) is 'The columns of tables and views that are declared with a user type.';

create or replace procedure tsql.create_type(schema text, name text, declared text)
language plpgsql
as $$
declare
  schema_name constant text := coalesce(nullif(schema, ''), current_schema());
begin
  if exists (
    select from pg_catalog.pg_type where typnamespace = pg_catalog.to_regnamespace(quote_ident(schema_name)) and typname = lower(name)
  ) then
    perform tsql.raise(219, 16, 1, format(
      'The type ''%s'' already exists, or you do not have permission to create it.', name));
  end if;
  execute format('create domain %I.%I as text', schema_name, lower(name));
  execute format('comment on domain %I.%I is %L', schema_name, lower(name),
    format('T-SQL "%s" %s', replace(name, '"', '""'), declared));
  notify ringlog_catalogue, 'columns';
end
$$;
comment on procedure tsql.create_type(text, text, text) is
$$Makes a user type. declared: its system type, with `null`, `not null` or `identity`. Error: it is there (219).$$;

create or replace procedure tsql.drop_type(schema text, name text, if_exists boolean)
language plpgsql
as $$
declare
  found constant oid := tsql.user_type(name);
begin
  if found is null or schema not in ('', current_schema()) then
    if if_exists then
      return;
    end if;
    perform tsql.raise(218, 16, 1, format('Could not find the type ''%s''. Either it does not exist or you do not have the '
      'necessary permission.', name));
  elsif exists (select from tsql.columns_of_type(name)) then
    perform tsql.raise(3732, 16, 1, format('Cannot drop type ''%s'' because it is being referenced by object ''%s''. There may be '
      'other objects that reference this type.', name, (
        select relname from pg_catalog.pg_class where oid = (select min(relation::oid) from tsql.columns_of_type(name)))));
  end if;
  execute format('drop domain %s', found::regtype);
  notify ringlog_catalogue, 'columns';
end
$$;
comment on procedure tsql.drop_type(text, text, boolean) is
'Drops a user type. Errors: there is none of the name (218), a column has it (3732).';

create or replace procedure tsql.fill_table(target text, source text)
language plpgsql
as $$
declare
  columns text;
begin
  if source is null then
    return;
  elsif source not like '#@%' or to_regclass(format('pg_temp.%I', source)) is null then
    perform tsql.raise(206, 16, 2, 'Operand type clash: the argument of a table-valued parameter is a table variable.');
  end if;
  -- columns that a table computes have the same values in the other one
  select string_agg(quote_ident(attname), ', ' order by attnum) into columns
  from pg_catalog.pg_attribute
  where attrelid = target::regclass and attnum > 0 and not attisdropped and attgenerated = '';
  execute format('insert into %s (%s) overriding system value select %s from pg_temp.%I', target, columns, columns, source);
end
$$;
comment on procedure tsql.fill_table(text, text) is
$$Copies the rows of a table variable into that of a parameter. Error: the source is no table variable (206).$$;

create or replace function tsql.bindable(kind text, name text) returns oid
language sql stable
as $$
  select oid from pg_catalog.pg_proc
  where pronamespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident(current_schema())) and proname = lower(name)
    and prosrc like '%-- ' || kind || ' of T-SQL'
$$;
comment on function tsql.bindable(text, text) is 'The function of a rule or a default of the current database.';

create or replace procedure tsql.create_bindable(kind text, schema text, name text, body text, source text)
language plpgsql
as $$
declare
  schema_name constant text := coalesce(nullif(schema, ''), current_schema());
  own constant text := lower(name);
  space constant oid := pg_catalog.to_regnamespace(quote_ident(schema_name));
  type_ regtype;
begin
  if exists (select from pg_catalog.pg_proc where pronamespace = space and lower(proname) = own)
    or exists (select from pg_catalog.pg_class where relnamespace = space and lower(relname) = own) then
    perform tsql.raise(2714, 16, 3, format('There is already an object named ''%s'' in the database.', name));
  end if;
  if kind = 'default' then
    execute format('select pg_typeof(%s)', body) into type_;
  end if;
  execute format('create function %I.%I(%s) returns %s language sql as %L', schema_name, own,
    case kind when 'rule' then '"@value" anyelement' else '' end,
    case kind when 'rule' then 'boolean' else coalesce(type_::text, 'text') end,
    format(E'select %s\n-- %s of T-SQL', body, kind));
  execute format('comment on function %I.%I is %L', schema_name, own, source);
  -- they are evaluated with the rights of the user who changes a row
  execute format('grant execute on function %I.%I to public', schema_name, own);
end
$$;
comment on procedure tsql.create_bindable(text, text, text, text, text) is
$$Makes a rule or a default (kind). body: the condition of "@value", or the value, in SQL; source: the T-SQL. Error: the name is
taken (2714).$$;

create or replace procedure tsql.drop_bindable(kind text, schema text, name text, if_exists boolean)
language plpgsql
as $$
declare
  found constant oid := tsql.bindable(kind, name);
begin
  if found is null or schema not in ('', current_schema()) then
    if if_exists then
      return;
    end if;
    perform tsql.refuse_drop(kind, name, (
      select other from (values ('rule'), ('default')) as kinds (other) where other <> kind and tsql.bindable(other, name) is not null
    ));
    perform tsql.raise(3701, 11, 5, format(
      'Cannot drop the %s ''%s'', because it does not exist or you do not have permission.', kind, name));
  elsif exists (
    select from pg_catalog.pg_depend where refclassid = 'pg_catalog.pg_proc'::regclass and refobjid = found
  ) then
    perform tsql.raise(3716, 16, 1, format('The %s ''%s'' cannot be dropped because it is bound to one or more %s.', kind, name,
      case when exists (
        select from pg_catalog.pg_depend where refclassid = 'pg_catalog.pg_proc'::regclass and refobjid = found
          and (classid = 'pg_catalog.pg_attrdef'::regclass or exists (
            select from pg_catalog.pg_constraint where pg_constraint.oid = objid and conrelid <> 0))
      ) then 'column' else 'data type' end));
  end if;
  execute format('drop function %s', found::regprocedure);
end
$$;
comment on procedure tsql.drop_bindable(text, text, text, boolean) is
'Drops a rule or a default. Errors: there is none of the name (3701), it is the other (3705), it is bound (3716).';

create or replace function tsql.bound_default(function oid, type_ oid, typmod integer) returns text
language sql stable
return case
  when function is null then 'drop default'
  -- one of version 1.0.0 is converted by its type
  when (select prorettype::regtype::text from pg_catalog.pg_proc where oid = function) like 'tsql.carried%'
    then format('set default %s()', function::regproc)
  else 'set default ' || tsql.converted_for(format('%s()', function::regproc), type_, typmod)
end;
comment on function tsql.bound_default(oid, oid, integer) is
  'What ALTER does for a default that is bound to a column or domain of this type; null: it is unbound.';

create or replace procedure tsql.bind_column(kind text, function oid, relation regclass, column_name name)
language plpgsql
as $$
declare
  own constant text := format('T-SQL rule %s', column_name);
  column_type record;
begin
  if kind = 'default' then
    select atttypid, atttypmod into column_type from pg_catalog.pg_attribute where attrelid = relation and attname = column_name;
    execute format('alter table %s alter column %I %s', relation, column_name,
      tsql.bound_default(function, column_type.atttypid, column_type.atttypmod));
    return;
  end if;
  if exists (select from pg_catalog.pg_constraint where conrelid = relation and conname = own) then
    execute format('alter table %s drop constraint %I', relation, own);
  end if;
  if function is not null then
    -- existing rows are not checked
    execute format('alter table %s add constraint %I check (%s(%I)) not valid', relation, own, function::regproc, column_name);
  end if;
end
$$;
comment on procedure tsql.bind_column(text, oid, regclass, name) is
'Binds a rule or a default to a column, in place of another; null: unbinds it.';

create or replace procedure tsql.bind_type(kind text, function oid, type_ oid, only_future boolean)
language plpgsql
as $$
declare
  one record;
begin
  if kind = 'default' then
    execute format('alter domain %s %s', type_::regtype, tsql.bound_default(function, type_, -1));
  else
    if exists (select from pg_catalog.pg_constraint where contypid = type_) then
      execute format('alter domain %s drop constraint "T-SQL rule"', type_::regtype);
    end if;
    if function is not null then
      execute format('alter domain %s add constraint "T-SQL rule" check (%s(value))', type_::regtype, function::regproc);
    end if;
  end if;
  if only_future then
    return;
  end if;
  for one in
    select listed.* from tsql.columns_of_type((select typname from pg_catalog.pg_type where oid = type_)) as listed
    join pg_catalog.pg_class on oid = listed.relation and relkind in ('r', 'p')
  loop
    call tsql.bind_column(kind, function, one.relation, one.column_name);
  end loop;
end
$$;
comment on procedure tsql.bind_type(text, oid, oid, boolean) is
$$Binds a rule or a default to a user type, and to its columns unless only_future; null: unbinds it.$$;

create or replace function tsql.bound_to_type(type_ oid) returns table (kind text, function oid)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select case classid when 'pg_type'::regclass then 'default' else 'rule' end, refobjid
  from pg_depend
  join pg_proc on pg_proc.oid = refobjid and prosrc ~ '-- (rule|default) of T-SQL$'
  where refclassid = 'pg_proc'::regclass and (
    classid = 'pg_type'::regclass and objid = type_
    or classid = 'pg_constraint'::regclass and objid in (select oid from pg_constraint where contypid = type_)
  )
$$;
comment on function tsql.bound_to_type(oid) is 'The rule and the default that are bound to a user type.';

create or replace procedure tsql.bind_new_columns(target text, columns text[], declarations text[])
language plpgsql
as $$
declare
  one record;
begin
  for one in
    select given.column_name, bound.kind, bound.function
    from unnest(columns, declarations) as given (column_name, says)
    cross join substring(given.says from '(?:^| )as "((?:[^"]|"")+)"$') as said (type_)
    cross join tsql.bound_to_type(tsql.user_type(replace(said.type_, '""', '"'))) as bound
    join pg_catalog.pg_attribute on attrelid = target::regclass and attname = given.column_name
    where bound.kind = 'rule' or not atthasdef and attidentity = ''
  loop
    call tsql.bind_column(one.kind, one.function, target::regclass, one.column_name::name);
  end loop;
end
$$;
comment on procedure tsql.bind_new_columns(text, text[], text[]) is
'Binds the rules and defaults of user types to their new columns; a column keeps a default of its own.';
