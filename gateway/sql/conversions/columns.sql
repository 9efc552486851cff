-- Assignment of values to columns.

create or replace function tsql.conversion_class(type_ regtype) returns text
language sql immutable parallel safe
return case format_type(type_, null)
  when 'boolean' then 'bit'
  when 'smallint' then 'int' when 'integer' then 'int' when 'bigint' then 'int' when 'tsql.tinyint' then 'int'
  when 'tsql.usmallint' then 'int' when 'tsql.uint' then 'int' when 'tsql.ubigint' then 'numeric'
  when 'numeric' then 'numeric' when 'tsql.money' then 'numeric' when 'tsql.smallmoney' then 'numeric'
  when 'real' then 'float' when 'double precision' then 'float'
  when 'bytea' then 'varbinary'
  when 'uuid' then 'uniqueidentifier'
  when 'date' then 'date'
  when 'time without time zone' then 'time'
  when 'timestamp without time zone' then 'datetime' when 'timestamp with time zone' then 'datetime'
  when 'tsql.datetimeoffset' then 'datetime2'
  when 'tsql.datetime' then 'datetime' when 'tsql.smalldatetime' then 'datetime'
  when 'xml' then 'xml'
  when 'tsql.sql_variant' then 'sql_variant'
  else 'varchar'
end;
comment on function tsql.conversion_class(regtype) is 'The class of a type, as tsql.assignment_error names it.';

create or replace function tsql.assigned(value anyelement, target text, sybase boolean) returns anyelement
language plpgsql immutable parallel safe
as $$
declare
  source text := tsql.conversion_class(pg_typeof(value));
  error integer := tsql.assignment_error(source, target, sybase);
begin
  if error is not null then
    perform tsql.fail_assignment(error, source, target);
  end if;
  return value;
end
$$;
comment on function tsql.assigned(anyelement, text, boolean) is
  'The value, if its type converts implicitly to the types of a class; error 206 or 257 otherwise.';

create or replace function tsql.converted_for(value text, type_ oid, typmod integer) returns text
language sql stable
return (
  select format(case format_type(plain.oid, null)
    when 'boolean' then 'tsql.to_bit(%s)' when 'smallint' then 'tsql.to_smallint(%s)' when 'integer' then 'tsql.to_int(%s)'
    when 'bigint' then 'tsql.to_bigint(%s)' when 'numeric' then 'tsql.to_numeric(%s)' when 'real' then 'tsql.to_real(%s)'
    when 'double precision' then 'tsql.to_float(%s)' when 'date' then 'tsql.to_date(%s)'
    when 'time without time zone' then 'tsql.to_time(%s)' when 'uuid' then 'tsql.to_guid(%s)' when 'bytea' then 'tsql.varbytes(%s)'
    when 'text' then 'tsql.text_of(%s)' when 'character varying' then 'tsql.text_of(%s)' when 'character' then 'tsql.text_of(%s)'
    when 'timestamp without time zone' then
      case plain.typmod when 4 then 'tsql.to_datetime(%s)' when 1 then 'tsql.to_smalldatetime(%s)' else 'tsql.moment(%s)' end
    when 'tsql.datetime' then 'tsql.to_datetime(%s)' when 'tsql.smalldatetime' then 'tsql.to_smalldatetime(%s)'
    when 'timestamp with time zone' then 'tsql.instant(tsql.moment(%s))'
    when 'tsql.money' then 'tsql.to_money(%s)' when 'tsql.smallmoney' then 'tsql.to_smallmoney(%s)'
    when 'tsql.tinyint' then 'tsql.to_tinyint(%s)'
    when 'tsql.datetimeoffset' then 'tsql.to_datetimeoffset(%s, 7)' when 'tsql.sql_variant' then 'tsql.to_sql_variant(%s)'
    else '%s' end, value)
  from pg_catalog.pg_type t
  cross join lateral (
    select case when t.typtype = 'd' and t.typnamespace <> 'tsql'::regnamespace then t.typbasetype else t.oid end as oid,
      case when t.typtype = 'd' then t.typtypmod else $3 end as typmod
  ) as plain
  where t.oid = type_
);
comment on function tsql.converted_for(text, oid, integer) is
  'A value in SQL, converted for a column or domain of this type: the default that is given to one by its name.';

create or replace function tsql.demand_values(relation regclass, number integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  columns integer;
  identities integer;
begin
  -- identity and computed columns accept no value
  select count(*) filter (where attidentity = ''), count(*) filter (where attidentity <> '')
  into columns, identities
  from pg_attribute
  where attrelid = relation and attnum > 0 and not attisdropped and attgenerated = '';
  if identities > 0 and columns + identities = number then
    perform tsql.fail(8101, format('An explicit value for the identity column in table ''%s'' can only be specified '
      'when a column list is used and IDENTITY_INSERT is ON.', (select relname from pg_class where oid = relation)));
  elsif columns <> number then
    perform tsql.fail(213, 'Column name or number of supplied values does not match table definition.');
  end if;
end
$$;
comment on function tsql.demand_values(regclass, integer) is
'Error 213 if an INSERT without a column list cannot give a table this number of values; 8101 if the number includes the
identity column. It is volatile: it sees what has been committed while PostgreSQL waited for the table.';

create or replace function tsql.takes(relation regclass, number integer) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  perform tsql.demand_values(relation, number);
  return true;
end
$$;
comment on function tsql.takes(regclass, integer) is
'True, or the error of tsql.demand_values. It is immutable, and its arguments are constants: PostgreSQL evaluates it when it
plans the INSERT, and again after a change of the table.';

create or replace function tsql.takes_output(target regclass) returns boolean
language plpgsql stable
as $$
declare
  shown text;
  found name;
begin
  select relname into shown from pg_class where oid = target;
  if exists (select from pg_class where oid = target and relkind = 'v') then
    perform tsql.fail(330, format('The target ''%s'' of the OUTPUT INTO clause cannot be a view or common table expression.',
      shown));
  end if;
  -- constraints that implement a type are not T-SQL's
  if exists (
    select from pg_trigger
    where tgrelid = target and not tgisinternal and tgenabled <> 'D'
      and tgname not like 'T-SQL %'
  ) then
    perform tsql.fail(331, format('The target table ''%s'' of the OUTPUT INTO clause cannot have any enabled triggers.',
      shown));
  end if;
  select conname into found from pg_constraint where contype = 'f' and target in (conrelid, confrelid) limit 1;
  if found is not null then
    perform tsql.fail(332, format('The target table ''%s'' of the OUTPUT INTO clause cannot be on either side of a '
      '(primary key, foreign key) relationship. Found reference constraint ''%s''.', shown, found));
  end if;
  select conname into found from pg_constraint where contype = 'c' and target = conrelid limit 1;
  if found is not null then
    perform tsql.fail(333, format('The target table ''%s'' of the OUTPUT INTO clause cannot have any enabled check '
      'constraints or any enabled rules. Found check constraint or rule ''%s''.', shown, found));
  end if;
  return true;
end
$$;
comment on function tsql.takes_output(regclass) is
  'True for a table that OUTPUT INTO may fill; errors 330 to 333 for views and tables with triggers, foreign keys and checks.';
