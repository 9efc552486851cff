-- CREATE TABLE, CREATE INDEX and TRUNCATE TABLE; dropping of tables and views.

create or replace function tsql.demand_table(target text, number integer) returns regclass
language plpgsql stable
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

create or replace function tsql.has_column(of regclass, name text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select exists (select from pg_attribute where attrelid = of and attname = name and attnum > 0 and not attisdropped)
$$;
comment on function tsql.has_column(regclass, text) is 'Whether a table has a column of this name.';

create or replace procedure tsql.name_index(index_ regclass, named text)
language plpgsql
as $$
declare
  before constant text := obj_description(index_, 'pg_class');
begin
  if before like 'T-SQL "%' or exists (
    select from pg_index
    join pg_class as indexes on indexes.oid = indexrelid
    join pg_class as tables on tables.oid = indrelid
    where indexrelid = index_ and indexes.relname <> concat(tables.relname, '.', named)
  ) then
    execute format('comment on index %s is %L', index_, tsql.with_properties(format('T-SQL "%s"%s',
      replace(named, '"', '""'), substring(before from '^T-SQL "(?:[^"]|"")+"([^\n]*)')), before));
  end if;
end
$$;
comment on procedure tsql.name_index(regclass, text) is
'Keeps the name of an index in its comment, if PostgreSQL has it in other letters or with a digest.';

create or replace procedure tsql.demand_indexable(target text, keys text[])
language plpgsql
as $$
declare
  of constant regclass := to_regclass(target);
  unfit constant text := (
    select attname
    from pg_attribute
    cross join tsql.declared_name(of, attname) as declared
    where attrelid = of and attname = any (keys) and case declared
      when '' then atttypmod = -1 and atttypid = any (array['text', 'varchar', 'bytea', 'xml', 'tsql.ci_varchar']::regtype[])
      else declared ~ '^(?:text|ntext|image|xml)$|\(max\)' end
    order by array_position(keys, attname::text)
    limit 1
  );
begin
  if unfit is not null then
    perform tsql.fail(1919, format(
      'Column ''%s'' in table ''%s'' is of a type that is invalid for use as a key column in an index.',
      unfit, (select relname from pg_class where oid = of)));
  end if;
end
$$;
comment on procedure tsql.demand_indexable(text, text[]) is
'Error 1919 for a column whose values can have two gigabytes.';

create or replace procedure tsql.create_index(
  definition text, target text, index_ text, columns text[], missing integer, named text, keys integer default 0
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
  for index in 1 .. cardinality(columns) loop
    if not tsql.has_column(of, columns[index]) then
      perform tsql.fail(1911, format('Column name ''%s'' does not exist in the target table or view.', columns[index]));
    elsif columns[index] = any (columns[:index - 1]) then
      perform tsql.fail(1909, format('Cannot use duplicate column names in index. Column name ''%s'' listed more than once.',
        columns[index]));
    end if;
  end loop;
  call tsql.demand_indexable(target, columns[:keys]);
  execute definition;
  made := (
    select oid from pg_class
    where relname = name and relnamespace = (select relnamespace from pg_class as tables where tables.oid = of)
  );
  call tsql.name_index(made, named);
end
$$;
comment on procedure tsql.create_index(text, text, text, text[], integer, text, integer) is
$$Runs a CREATE INDEX. index_, named: its names in PostgreSQL and T-SQL; columns: the columns of its list, of which the first
`keys` are those of the key, whose types are checked. Errors: no such table (missing) or column (1911), a column twice (1909), a type
that no index has (1919), the table has an index of this name (1913).$$;

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
  for index in 1 .. cardinality(tables) loop
    if to_regclass(tables[index]) is null then
      perform tsql.fail(1767, format('Foreign key references invalid table ''%s''.',
        array_to_string(parse_ident(tables[index], false), '.')));
    elsif columns[index] is not null and not tsql.has_column(tables[index]::regclass, columns[index]) then
      perform tsql.fail(1770, format('Foreign key references invalid column ''%s'' in referenced table ''%s''.',
        columns[index], array_to_string(parse_ident(tables[index], false), '.')));
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

create or replace function tsql.tell_digits(finest text) returns void
language plpgsql
as $$
begin
  if finest is not null then
    raise notice '%', format('Six digits of a second are kept of %s: a seventh is rounded.', finest);
  end if;
end
$$;
comment on function tsql.tell_digits(text) is 'Tells of new columns that are declared with seven digits of a second.';

create or replace procedure tsql.inherit(
  target text, not_null text[], numbered text, source oid, number smallint
)
language plpgsql
as $$
declare
  name text;
  numbers pg_sequence;
  last bigint;
begin
  foreach name in array not_null loop
    execute format('alter table %s alter column %I set not null', target, name);
  end loop;
  if numbered is null then
    return;
  end if;
  select s.* into numbers
  from pg_depend d join pg_sequence s on s.seqrelid = d.objid
  where d.classid = 'pg_class'::regclass and d.deptype = 'i'
    and d.refclassid = 'pg_class'::regclass and d.refobjid = source and d.refobjsubid = number;
  execute format(
    'alter table %s alter column %I add generated always as identity (start with %s increment by %s minvalue %s maxvalue %s)',
    target, numbered, numbers.seqstart, numbers.seqincrement, numbers.seqmin, numbers.seqmax);
  execute format(
    'select %s(%I) from %s', case when numbers.seqincrement > 0 then 'max' else 'min' end, numbered, target) into last;
  if last is not null then
    perform setval(pg_get_serial_sequence(target, numbered), last);
  end if;
end
$$;
comment on procedure tsql.inherit(text, text[], text, oid, smallint) is
$$Makes columns of a table NOT NULL, and one of them an identity like the column of another table by its number; its next
number follows the last of the rows.$$;

create or replace procedure tsql.inherit_from(target text, source text, names text[], columns text[])
language plpgsql
as $$
declare
  of constant oid := to_regclass(source);
  taken record;
begin
  select
    coalesce(array_agg(one.name) filter (where one.says is not null), '{}') as named,
    array_agg(format('"%s"%s', replace(one.name, '"', '""'), one.says)) filter (where one.says is not null) as says,
    coalesce(array_agg(one.name) filter (where one.attnotnull), '{}') as not_null,
    array_agg(one.name) filter (where one.attidentity <> '') as numbered,
    max(one.attnum) filter (where one.attidentity <> '') as number
  into taken
  from (
    select attnum, attnotnull, attidentity, case listed.source when '*' then attname else listed.name end as name,
      substring(col_description(of, attnum) from '^T-SQL "(?:[^"]|"")+"([^\n]*)') as says
    from unnest(names, columns) as listed (name, source)
    join pg_attribute on attrelid = of and attnum > 0 and not attisdropped and listed.source in (attname, '*')
  ) as one;
  call tsql.declare_columns(target, taken.named, taken.says);
  call tsql.inherit(target, taken.not_null, case cardinality(taken.numbered) when 1 then taken.numbered[1] end, of,
    taken.number);
  call tsql.watch_binaries(target);
  call tsql.watch_rowversions(target);
end
$$;
comment on procedure tsql.inherit_from(text, text, text[], text[]) is
$$Makes the columns with these names of a table as those of another table are, which they were selected from: their T-SQL
declarations, NOT NULL, the identity. '*': all columns, with their names.$$;

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

create or replace function tsql.refuse_drop(kind text, name text, actual text) returns void
language plpgsql
as $$
begin
  if actual is not null then
    perform tsql.raise(3705, 16, 1, format('Cannot use DROP %s with ''%s'' because ''%s'' is a %s. Use DROP %s.',
      upper(kind), name, name, actual, upper(actual)));
  end if;
end
$$;
comment on function tsql.refuse_drop(text, text, text) is
'Error 3705: the name is that of an object of another kind (actual; null: of none).';

create or replace function tsql.drop_relation(kind text, schema text, name text, if_exists boolean) returns void
language plpgsql
as $$
declare
  found regclass := (
    select c.oid from pg_catalog.pg_class c
    where c.relname = name
      and c.relkind = any (case kind when 'view' then '{v,m}' else '{r,p,f}' end::"char"[])
      and c.relnamespace = case schema when 'pg_temp' then pg_catalog.pg_my_temp_schema() else (
        select n.oid from pg_catalog.pg_namespace n where n.nspname = schema
      ) end
      and pg_catalog.pg_has_role(c.relowner, 'usage')
  );
begin
  if schema = 'tsql_global' then
    perform tsql.drop_global(name, if_exists);
    return;
  end if;
  if found is not null then
    execute format('drop %s %s', kind, found);
  elsif not if_exists then
    perform tsql.refuse_drop(kind, name, (
      select case kind when 'view' then 'table' else 'view' end from pg_catalog.pg_class c
      where c.relname = name and c.relnamespace = to_regnamespace(quote_ident(schema))
        and c.relkind = any (case kind when 'view' then '{r,p,f}' else '{v,m}' end::"char"[])
    ));
    perform tsql.raise(3701, 11, 5, format(
      'Cannot drop the %s ''%s'', because it does not exist or you do not have permission.', kind, name));
  end if;
end
$$;
comment on function tsql.drop_relation(text, text, text, boolean) is
$$Drops a table or view of one schema (pg_temp: a temporary table), with the caller's rights. Error: it does not exist or
belongs to another login (3701), it is a view or table (3705).$$;
