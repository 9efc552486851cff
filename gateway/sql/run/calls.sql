-- Calls between procedures compiled from T-SQL.

do $$
begin
  if to_regtype('tsql.call_result') is null then
    create type tsql.call_result as (status integer, outputs text[], error integer, rows integer, value text);
    comment on type tsql.call_result is
      'What a called procedure leaves: its return status, the outputs asked for as texts in the order of the '
      'arguments (null for the others), @@error and @@rowcount where it tells them; the status, or the value of a '
      'function, as a text.';
  end if;
end
$$;

create or replace function tsql.argument(value numeric, low numeric, high numeric, source text, target text)
returns numeric
language plpgsql immutable strict
as $$
begin
  if value not between low and high then
    perform tsql.fail(8114, format('Error converting data type %s to %s.', source, target));
  end if;
  return value;
end
$$;
comment on function tsql.argument(numeric, numeric, numeric, text, text) is
$$A number as an argument of a parameter whose type has a range of its own; error 8114 beyond it.$$;

create or replace function tsql.converted(value text, source text, target oid, declared text default null) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  -- `value` is an expression: the text of a value of type `source`
  select case
    when converter is null then format('%s::%s::%s', value, held, target::regtype)
    when converter = 'text_of' and digits is not null then format(
      case when length is null then '%s' else 'tsql.cut(%s, %s)' end,
      format('tsql.%s_text(%s::%s, 121, %s)', name, value, held, digits), length)
    when converter = 'text_of' and length is not null then format('tsql.%s(%s::%s, %s)',
      case when starts_with(declared, 'n') then 'to_nvarchar' else 'to_varchar' end, value, held, length)
    when converter = 'text_of' then format('tsql.text_of(%s::%s)', value, held)
    else format('(tsql.%s(%s::%s%s))::%s', converter, value, held,
      case converter when 'to_varbinary' then ', null' else '' end, target::regtype)
  end
  from (
    select
    of[1] as name,
    of[2] as digits,
    substring(declared from '\((\d+)\)$') as length,
    case of[1]
      when 'datetime2' then 'timestamp'
      when 'time' then 'time'
      when 'datetimeoffset' then 'tsql.datetimeoffset'
      else source
    end as held,
    case (select case t.typtype when 'd' then t.typbasetype else t.oid end from pg_type t where t.oid = target)
      when 'boolean'::regtype then 'to_bit'
      when 'smallint'::regtype then 'to_smallint'
      when 'integer'::regtype then 'to_int'
      when 'bigint'::regtype then 'to_bigint'
      when 'numeric'::regtype then 'to_numeric'
      when 'real'::regtype then 'to_real'
      when 'double precision'::regtype then 'to_float'
      when 'timestamp'::regtype then 'to_datetime2'
      when 'timestamptz'::regtype then 'to_datetime2'
      when 'date'::regtype then 'to_date'
      when 'time'::regtype then 'to_time'
      when 'varchar'::regtype then 'text_of'
      when 'text'::regtype then 'text_of'
      when 'character'::regtype then 'text_of'
      when 'uuid'::regtype then 'to_guid'
      when 'bytea'::regtype then 'to_varbinary'
    end as converter
    from regexp_match(source, '^(datetime2|time|datetimeoffset)\((\d)\)$') as of
  ) as known
$$;
comment on function tsql.converted(text, text, oid, text) is
$$An expression that turns the text of a value of one type into another type, as T-SQL hands it to a parameter. source: a type
of PostgreSQL's or of schema tsql; datetime2(n), time(n) and datetimeoffset(n), whose texts show their digits, as T-SQL has them.
declared: the parameter's type as T-SQL has it, for the length of a text.$$;

create or replace function tsql.status_of_failed(sqlstate text, detail text, context text) returns integer
language sql stable
as $$
  select 10 - least(24, case
    when sqlstate = 'TS001' then split_part(detail, ' ', 2)::integer
    else tsql.error_severity(tsql.error_number(sqlstate))
  end)
  -- the functions in which the error was raised, innermost first
  where split_part(context, 'PL/pgSQL function tsql.execute(', 1) ~ 'PL/pgSQL function (?!tsql\.)'
$$;
comment on function tsql.status_of_failed(text, text, text) is
$$The return status of a called procedure that an error has ended: 10 less the severity (SQL Server 6.5, "Return Status
Values"; ASE Reference Manual, "return"). NULL: it was not begun.$$;

create or replace function tsql.execute(
  database text, schema text, procedure text, names text[], asked boolean[], "values" text[], types text[],
  value_type text default null, takes_over boolean default false, takers text[] default null
) returns tsql.call_result
language plpgsql
as $$
declare
  called pg_catalog.pg_proc;
  found_ oid[] := array(select p.oid from tsql.procedures_named(database, schema, procedure) as p);
  one record;
  written text[] := '{}';
  taken integer[] := '{}';
  formal text[] := array_fill(null::text, array[cardinality(names)]);
  output_names text[] := formal;
  output_types oid[] := formal::oid[];
  output text;
  outputs integer := 0;
  has_status boolean := false;
  sends_rows boolean;
  gives_value boolean;
  call text;
  gave record;
  result jsonb := '{}';
  rows_ refcursor;
  answer tsql.call_result;
  takes text[];
  try_ text := current_setting('tsql.try', true);
begin
  if found_ = '{}' then
    perform tsql.raise(2812, 16, 62, format('Could not find stored procedure ''%s''.', procedure));
  elsif cardinality(found_) > 1 then
    perform tsql.raise(2812, 16, 62, format('''%s'' is not one procedure but several.', procedure));
  end if;
  select p.* into called from pg_catalog.pg_proc p where p.oid = found_[1];
  takes := string_to_array(substring(called.prosrc from '.*\n-- takes ([^\n]+)\n'), ';');

  -- an argument of a row type counts as one parameter per column
  for one in
    with argument as (
      select a.position, coalesce(called.proargnames[a.position], '') as name,
        coalesce(called.proargmodes[a.position], 'i') as mode, a.type
      from unnest(coalesce(called.proallargtypes, called.proargtypes::oid[])) with ordinality as a (type, position)
    ),
    parameter as (
      select argument.position, coalesce(field.attname, ltrim(argument.name, '@')) as name,
        coalesce(field.atttypid, argument.type) as type, field.attnum as field,
        row_number() over (order by argument.position, field.attnum) as number
      from argument
      left join pg_catalog.pg_type t on t.oid = argument.type and t.typtype = 'c' and argument.mode = 'i'
      left join pg_catalog.pg_attribute field
        on field.attrelid = t.typrelid and field.attnum > 0 and not field.attisdropped
      where argument.mode in ('i', 'b', 'o') and (argument.mode, argument.name) <> ('o', 'return_status')
    ),
    given as (
      select sent.name, sent.type, sent.position
      from unnest(names, types) with ordinality as sent (name, type, position)
    ),
    filled as (
      select parameter.position,
        array_agg(given.position order by parameter.number) filter (where given.position is not null) as sources,
        array_agg(
          case when given.position is null then 'null'
            else tsql.converted(format('$1[%s]', given.position), given.type, parameter.type, takes[parameter.number]) end
          order by parameter.number) as "values",
        bool_or(parameter.field is not null) as is_row
      from parameter
      left join given on case given.name when '' then given.position = parameter.number
        else lower(ltrim(given.name, '@')) = lower(parameter.name) end
      group by parameter.position
    )
    select argument.*, filled.sources, filled."values", filled.is_row,
      count(*) filter (where argument.mode in ('i', 'b')) over (order by argument.position) as inputs
    from argument
    left join filled on filled.position = argument.position
    order by argument.position
  loop
    if one.mode in ('b', 'o') then
      outputs := outputs + 1;
      has_status := has_status or (one.mode, one.name) = ('o', 'return_status');
    end if;
    if one.mode not in ('i', 'b', 'o') then
      continue;
    end if;
    taken := taken || one.sources::integer[];
    if one.sources is not null then
      formal[one.sources[1]] := ltrim(one.name, '@');
    end if;
    if one.sources is not null and one.mode in ('b', 'o') then
      output_names[one.sources[1]] := one.name;
      output_types[one.sources[1]] := one.type;
    end if;
    if one.mode = 'o' then
      if called.prokind = 'p' then
        written := written || format('%I => null', one.name);
      end if;
    elsif one.sources is not null then
      written := written || (
        case when one.name = '' then '' else format('%I => ', one.name) end
        || case when one.is_row
          then format('row(%s)::%s', array_to_string(one."values", ', '), one.type::regtype)
          else one."values"[1] end);
    elsif one.inputs <= called.pronargs - called.pronargdefaults then
      perform tsql.raise(201, 16, 4, format(
        'Procedure or function ''%s'' expects parameter ''@%s'', which was not supplied.',
        called.proname, ltrim(one.name, '@')));
    end if;
  end loop;
  for index in 1 .. cardinality(names) loop
    if not index = any (taken) then
      if names[index] = '' then
        perform tsql.raise(8144, 16, 2, format(
          'Procedure or function %s has too many arguments specified.', called.proname));
      end if;
      perform tsql.raise(8145, 16, 2, format(
        '%s is not a parameter for procedure %s.', names[index], called.proname));
    elsif asked[index] and output_names[index] is null then
      perform tsql.raise(8162, 16, 2, format(
        'The formal parameter ''@%s'' was not declared as an OUTPUT parameter, but the actual parameter passed in '
        'requested output.', formal[index]));
    end if;
  end loop;
  if cardinality(taken) > cardinality(names)
    or (select count(*) <> count(distinct n) from unnest(taken) as n)
    or (select count(*) <> count(distinct n) from unnest(output_names) as n where n is not null) then
    perform tsql.raise(8143, 16, 1, format('A parameter of %s was supplied multiple times.', called.proname));
  end if;

  call := format('%s(%s)', called.oid::regproc, array_to_string(written, ', '));
  gives_value := value_type is not null and called.prokind = 'f' and not called.proretset and outputs = 0
    and called.prorettype <> 'void'::regtype;
  sends_rows := not gives_value and (called.proretset or outputs = 0 and called.prokind = 'f'
    and called.prorettype not in ('smallint'::regtype, 'integer'::regtype, 'void'::regtype));
  perform set_config('tsql.error', '0', true), set_config('tsql.rowcount', '', true);
  if try_ is distinct from 'on' and try_ is distinct from 'aborts' then
    perform set_config('tsql.try',
      case when try_ in ('told', 'returned') then case when takes_over then 'returned' else 'on' end
        when takes_over then 'called' else 'alone' end, true);
  end if;
  if sends_rows then
    open rows_ for execute 'select * from ' || call using "values";
    raise notice using errcode = '01R01', message = rows_::text;
  elsif gives_value then
    execute format('select (%s)::text from (select %s) as given (value)',
      coalesce(takers[cardinality(names) + 1], tsql.converted('value', called.prorettype::regtype::text,
        to_regtype(regexp_replace(value_type, '\(.*', ''))::oid)), call)
      into answer.value using "values";
  elsif called.prokind = 'p' and outputs = 0 then
    execute 'call ' || call using "values";
  else
    execute case
      when called.prokind = 'p' then 'call ' || call
      when outputs > 0 then 'select * from ' || call
      else 'select ' || call || ' as return_status'
    end into gave using "values";
    result := to_jsonb(gave);
    has_status := has_status or outputs = 0;
  end if;
  perform set_config('tsql.try', coalesce(try_, ''), true);
  answer.status := case when has_status then coalesce(nullif(result ->> 'return_status', '')::integer, 0) else 0 end;
  if not gives_value then
    answer.value := answer.status::text;
  end if;
  answer.outputs := array(
    select case when asked[named.position] then result ->> named.name end
    from unnest(output_names) with ordinality as named (name, position)
    order by named.position
  );
  for index in 1 .. cardinality(names) loop
    if asked[index] and takers is not null then
      execute format('select (%s)::text from (select $1::%s) as given (value)', takers[index], output_types[index]::regtype)
        into output using answer.outputs[index];
      answer.outputs[index] := output;
    end if;
  end loop;
  answer.error := coalesce(nullif(current_setting('tsql.error', true), '')::integer, 0);
  answer.rows := nullif(current_setting('tsql.rowcount', true), '')::integer;
  return answer;
end
$$;
comment on function tsql.execute(text, text, text, text[], boolean[], text[], text[], text, boolean, text[]) is
$$EXECUTE in a compiled procedure: calls what a name means in a database. names ('' for an argument given by its
position), asked (OUTPUT), values and types (PostgreSQL's) are those of the arguments; value_type is that of the variable which
takes the return status, or the value of a function; takes_over: the caller asks whether the call has ended with an error for
a TRY block around it (tsql.is_handed_over); takers: expressions of "value", which make of each output, and last of the value
of a function, what the variable that takes it is. A result set is announced by the
notice 01R01. The call has the rights of the procedure that calls.
Errors: no such procedure, or several (2812), a parameter missing (201), unknown (8145), given twice (8143), too
many (8144), no output (8162).$$;
