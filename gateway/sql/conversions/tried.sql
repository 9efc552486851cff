-- In ASE a whole number that does not fit is an error ("Converting numeric data to a character type"), not a *.
create or replace function tsql.with_room(value text, length integer, type_ text) returns text
language plpgsql immutable parallel safe
as $$
begin
  if length(value) > length then
    perform tsql.fail(265, format('Insufficient result space for explicit conversion of %s value ''%s'' to a VARCHAR field.',
      upper(type_), value));
  end if;
  return value;
end
$$;

-- Conversions to nvarchar equal those to varchar except for numbers and bytes (conversions/texts.sql,
-- conversions/bytes.sql); those to ASE's varchar except for whole numbers.
do $$
declare
  source record;
begin
  for source in
    select
      format_type(proargtypes[0], null) as type,
      case provolatile when 'i' then 'immutable' else 'stable' end as kind,
      case proargtypes[0] when 'boolean'::regtype then 'bit' when 'smallint'::regtype then 'smallint'
        when 'integer'::regtype then 'int' end as whole
    from pg_proc
    where pronamespace = 'tsql'::regnamespace and proname = 'to_varchar' and pronargs = 2
      -- operators/collations.sql has those
      and format_type(proargtypes[0], null) not like 'tsql.ci\_%'
  loop
    if source.whole is null and source.type <> 'bytea' then
      execute format(
        'create or replace function tsql.to_nvarchar(value %s, length integer) returns text'
        ' language sql %s parallel safe return tsql.to_varchar(value, length)', source.type, source.kind);
    end if;
    execute format(
      'create or replace function tsql.to_sybase_varchar(value %s, length integer) returns text'
      ' language sql %s parallel safe return %s', source.type, source.kind,
      case when source.whole is null then 'tsql.to_varchar(value, length)'
        else format('tsql.with_room(tsql.text_of(value), length, %L)', source.whole) end);
  end loop;
end
$$;

-- TRY_CAST and TRY_CONVERT: a variant of each conversion that returns null where the original fails.

do $$
declare
  conversion record;
begin
  for conversion in
    select
      proname, oid, pg_get_function_result(oid) as result,
      array(select format_type(type, null) from unnest(proargtypes) with ordinality as arguments (type, position)
        order by position) as takes
    from pg_proc
    where pronamespace = 'tsql'::regnamespace and (proname like 'to\_%' or proname like 'read\_datetime%')
      and format_type(proargtypes[0], null) not like 'tsql.ci\_%'
  loop
    execute format(
      'create or replace function tsql.%I(%s) returns %s language plpgsql stable as %L',
      'try_' || regexp_replace(conversion.proname, '^to_', ''),
      array_to_string(conversion.takes, ', '), conversion.result,
      format(
        'begin return tsql.%I(%s); exception when others then '
        -- errors of T-SQL, and PostgreSQL's errors of data
        'if sqlstate like ''S%%'' or sqlstate like ''22%%'' then return null; end if; raise; end',
        conversion.proname,
        (select string_agg('$' || position, ', ' order by position)
         from generate_subscripts(conversion.takes, 1) as position)));
  end loop;
end
$$;
