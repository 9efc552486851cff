-- ALTER TABLE.

create or replace function tsql.shown_constraint(of_constraint oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    replace(substring(obj_description(oid, 'pg_constraint') from '^T-SQL "((?:[^"]|"")+)"'), '""', '"'), conname)
  from pg_constraint
  where oid = of_constraint
$$;
comment on function tsql.shown_constraint(oid) is 'The name of a constraint in the case in which it was declared.';

create or replace function tsql.indexes_of(target regclass)
returns table (index_ regclass, name text, is_clustered boolean)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select indexrelid,
    coalesce(tsql.shown_constraint(keys.oid), replace(said.words[1], '""', '"'), regexp_replace(relname, '^.*\.', '')),
    case when indisprimary then said.words[2] is distinct from 'nonclustered' else said.words[2] is not distinct from 'clustered' end
  from pg_index
  join pg_class as indexes on indexes.oid = indexrelid
  left join pg_constraint as keys on conindid = indexrelid and conrelid = indrelid and contype in ('p', 'u')
  left join regexp_match(obj_description(indexrelid, 'pg_class'), '^T-SQL "((?:[^"]|"")+)" ?(\w*)') as said (words) on true
  where indrelid = target
$$;
comment on function tsql.indexes_of(regclass) is
$$The indexes of a table. That of a primary key is clustered, and others are not, unless the comment of the index says otherwise
(`T-SQL "name" nonclustered`), which copies of a table have too.$$;

create or replace function tsql.index_of_key(target regclass, columns text[]) returns regclass
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select conindid
  from pg_constraint
  where conrelid = target and case when columns is null then contype = 'p' else contype = 'u' and columns = array(
    select attname::text from unnest(conkey) with ordinality as keys (number, position)
    join pg_attribute on attrelid = conrelid and attnum = keys.number
    order by keys.position
  ) end
  order by oid desc
  limit 1
$$;
comment on function tsql.index_of_key(regclass, text[]) is
'The index of a table''s primary key, or of its latest unique constraint of these columns.';

create or replace procedure tsql.cluster(made regclass, clustered boolean)
language plpgsql
as $$
declare
  of constant regclass := (select indrelid from pg_index where indexrelid = made);
  other constant text := (select name from tsql.indexes_of(of) where is_clustered and index_ <> made);
  own record;
begin
  if clustered and other is not null then
    perform tsql.fail(1902, format(
      'Cannot create more than one clustered index on table ''%s''. Drop the existing clustered index ''%s'' before creating another.',
      (select relname from pg_class where oid = of), other));
  end if;
  select * into own from tsql.indexes_of(of) where index_ = made;
  if own.is_clustered = coalesce(clustered, other is null) then
    return;
  end if;
  execute format('comment on index %s is %L', made, tsql.with_properties(format('T-SQL "%s" %s',
    replace(own.name, '"', '""'), case when own.is_clustered then 'nonclustered' else 'clustered' end),
    obj_description(made, 'pg_class')));
end
$$;
comment on procedure tsql.cluster(regclass, boolean) is
$$Notes whether a new index is its table's clustered one; null: if there is no other. Error: there is another one (1902).$$;

create or replace procedure tsql.demand_no_key(target text, index_ text, shown text)
language plpgsql
as $$
declare
  key constant text := (
    select case contype when 'p' then 'PRIMARY KEY' else 'UNIQUE KEY' end
    from pg_catalog.pg_constraint
    where conrelid = to_regclass(target) and contype in ('p', 'u') and lower(tsql.shown_constraint(oid)) = index_
  );
begin
  if key is not null then
    perform tsql.fail(3723, format(
      'An explicit DROP INDEX is not allowed on index ''%s.%s''. It is being used for %s constraint enforcement.', shown, index_, key));
  end if;
end
$$;
comment on procedure tsql.demand_no_key(text, text, text) is 'Error 3723: the index is that of a key of the table.';

create or replace function tsql.named_default(value anyelement, name text) returns anyelement
language sql immutable parallel safe
as $$ select value $$;
comment on function tsql.named_default(anyelement, text) is 'A default with its name, which PostgreSQL does not store.';

create or replace function tsql.defaults_of(target regclass)
returns table (column_name name, name text, is_named boolean)
language sql stable set search_path = pg_catalog, pg_temp
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
language sql stable set search_path = pg_catalog, pg_temp
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
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(substring(col_description(of, attnum) from '^T-SQL "(?:[^"]|"")+" ?((?:(?! ?as ")[^\n])*)'), '')
  from pg_attribute
  where attrelid = of and attname = of_column
$$;
comment on function tsql.declared_name(regclass, name) is
  'The declared type of a column; empty if PostgreSQL''s type determines it.';

create or replace function tsql.holding_alteration(
  of regclass, of_column name, new_type text, new_name text, nullable boolean
) returns table (kind text, name text)
language sql stable set search_path = pg_catalog, pg_temp
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
  foreach without_value in array key loop
    if not tsql.has_column(to_regclass(target), without_value) then
      perform tsql.fail(1911, format('Column name ''%s'' does not exist in the target table or view.', without_value));
    end if;
  end loop;
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

create or replace procedure tsql.set_default(target text, named text, value text, shown text, replaces boolean)
language plpgsql
as $$
declare
  of constant regclass := tsql.demand_table(target, 4902);
  one record;
  given text;
begin
  select atttypid, atttypmod, atthasdef and attgenerated = '' as has_default into one from pg_attribute
  where attrelid = of and attname = named and attnum > 0 and not attisdropped;
  if one is null then
    perform tsql.fail(1752, format('Column ''%s'' in table ''%s'' is invalid for creating a default constraint.',
      named, (select relname from pg_class where oid = of)));
  elsif one.has_default and not replaces then
    perform tsql.fail(1781, 'Column already has a DEFAULT bound to it.');
  end if;
  if value <> 'null' then
    execute format('select tsql.conversion_class(pg_typeof(%s))', value) into given;
    value := tsql.converted_for(value, one.atttypid, one.atttypmod);
    if shown is not null then
      value := format('tsql.named_default(%s, %L)', value, shown);
    end if;
  end if;
  execute format('alter table %s alter column %I set default %s', of, named, value);
exception when undefined_function or datatype_mismatch then
  perform tsql.fail_assignment(206, given, tsql.conversion_class(one.atttypid::regtype));
end
$$;
comment on procedure tsql.set_default(text, text, text, text, boolean) is
$$Gives a column a default, in SQL, which is converted for it. Errors: there is no such column (1752), it has a default and
this one does not replace it (1781), the value cannot be converted (206).$$;

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
