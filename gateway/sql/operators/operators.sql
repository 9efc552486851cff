-- Operators by the types of both operands: the operand of lower precedence is converted to the other's type (SQL Server,
-- "Data type precedence"). Queries use operator(tsql.+). PostgreSQL inlines the bodies, so that indexes can be used.

create or replace procedure tsql.make_operator(
  sign text, function_ text, left_ text, right_ text, result text, body text, volatility text default 'immutable'
)
language plpgsql
as $$
begin
  execute format(
    'create or replace function tsql.%I(l %s, r %s) returns %s language sql %s parallel safe return %s',
    function_, left_, right_, result, volatility, body);
  if to_regoperator(format('tsql.%s(%s,%s)', sign, left_, right_)) is null then
    execute format('create operator tsql.%s (function = tsql.%I, leftarg = %s, rightarg = %s)',
      sign, function_, left_, right_);
  end if;
end
$$;

create or replace procedure tsql.make_comparisons(
  one text, other text, value_of_one text, value_of_other text, schema text default 'pg_catalog'
)
language plpgsql
as $$
declare
  op record;
begin
  for op in select * from (values ('=', 'eq'), ('<>', 'ne'), ('<', 'lt'), ('<=', 'le'), ('>', 'gt'), ('>=', 'ge'))
    as ops (sign, name)
  loop
    call tsql.make_operator(op.sign, op.name, one, other, 'boolean', format('(%s operator(%s.%s) %s)',
      format(value_of_one, 'l'), schema, op.sign, format(value_of_other, 'r')));
    if one <> other then
      call tsql.make_operator(op.sign, op.name, other, one, 'boolean', format('(%s operator(%s.%s) %s)',
        format(value_of_other, 'l'), schema, op.sign, format(value_of_one, 'r')));
    end if;
  end loop;
end
$$;
comment on procedure tsql.make_comparisons(text, text, text, text, text) is
$$Creates the six comparisons between two types, in both orders. The values compared are expressions with %s for the operand.$$;

create or replace procedure tsql.make_operator_class(type_ text, class text, compare text)
language plpgsql
as $$
declare
  own text := current_user;
begin
  -- only a superuser may create operator classes, by which a type is ordered, grouped and unique; without them such
  -- queries are refused
  if (select rolsuper from pg_roles where rolname = session_user) and not exists (
    select from pg_opclass where opcintype = type_::regtype
  ) then
    execute format('set local role %I', session_user);
    execute format('create operator class tsql.%I default for type %s using btree as operator 1 tsql.<,'
      ' operator 2 tsql.<=, operator 3 tsql.=, operator 4 tsql.>=, operator 5 tsql.>, function 1 %s(%2$s, %2$s)',
      class, type_, compare);
    execute format('set local role %I', own);
  end if;
end
$$;

create or replace function tsql.undeclared_quotient(l numeric, r numeric) returns numeric
language plpgsql immutable parallel safe
as $$
begin
  if l is null or r is null then
    return null;
  end if;
  perform tsql.fail(8114, 'A quotient of decimals whose precision is not declared here is not supported: '
    'convert one of them to float, or both to decimal(p, s).');
end
$$;

create or replace function tsql.exact_product(value numeric) returns numeric
language plpgsql immutable strict parallel safe
as $$
begin
  if length(translate(value::text, '-.', '')) > 38 then
    perform tsql.fail(8115, 'Arithmetic overflow error converting expression to data type numeric.');
  end if;
  return value;
end
$$;

-- the negative of a number has its type
do $$
declare
  of record;
begin
  for of in
    select type, case when type like '%money' then replace(type, '.', '.to_') || '(- r::numeric)' else '(- r)' end as body
    from unnest(array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'tsql.money',
      'tsql.smallmoney']) as type
  loop
    execute format('create or replace function tsql.negative(r %1$s) returns %1$s language sql immutable parallel safe'
      ' return %2$s', of.type, of.body);
    if to_regoperator(format('tsql.-(none,%s)', of.type)) is null then
      execute format('create operator tsql.- (function = tsql.negative, rightarg = %s)', of.type);
    end if;
  end loop;
end
$$;

-- operators between money, and between money and whole numbers, return money
do $$
declare
  op record;
  sides record;
begin
  for sides in
    select l.type as l, r.type as r
    from unnest(array['tsql.money', 'tsql.smallmoney', 'tsql.tinyint', 'smallint', 'integer', 'bigint']) as l (type)
    cross join unnest(array['tsql.money', 'tsql.smallmoney', 'tsql.tinyint', 'smallint', 'integer', 'bigint']) as r (type)
    where l.type like '%money' or r.type like '%money'
  loop
    for op in select * from (values ('+', 'add', '+'), ('-', 'subtract', '-'), ('*', 'multiply', '*'),
      ('%', 'modulo', '%'), ('+|', 'sybase_add', '+')) as ops (sign, name, plain)
    loop
      call tsql.make_operator(op.sign, op.name, sides.l, sides.r, 'tsql.money',
        format('tsql.to_money(l::numeric %s r::numeric)', op.plain));
    end loop;
    call tsql.make_operator('/', 'divide', sides.l, sides.r, 'tsql.money',
      'tsql.to_money(tsql.quotient(l::numeric, r::numeric, 4))');
  end loop;
  -- operators between tinyints return tinyint
  for op in select * from (values ('+', 'add'), ('-', 'subtract'), ('*', 'multiply'), ('/', 'divide'), ('%', 'modulo'))
    as ops (sign, name)
  loop
    call tsql.make_operator(op.sign, op.name, 'tsql.tinyint', 'tsql.tinyint', 'tsql.tinyint',
      format('tsql.as_tinyint(least(l::integer %s r::integer, 256)::smallint)', op.sign));
  end loop;
end
$$;

-- operators between numbers: that of lower precedence is converted; a text and a bit become the other operand's type
do $$
declare
  numbers constant text[] := array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision'];
  readers constant text[] := array['to_smallint', 'to_int', 'to_bigint', 'to_numeric', 'to_real', 'to_float'];
  op record;
  side record;
  common text;
begin
  for i in 1 .. 6 loop
    for op in select * from (values ('+', 'add', '+', 6), ('-', 'subtract', '-', 6), ('*', 'multiply', '*', 6),
      ('/', 'divide', '/', 6), ('%', 'modulo', '%', 4), ('+|', 'sybase_add', '+', 6), ('&', 'bit_and', '&', 3),
      ('|', 'bit_or', '|', 3), ('^', 'bit_xor', '#', 3)) as ops (sign, name, plain, highest)
    loop
      for j in 1 .. 6 loop
        continue when greatest(i, j) > op.highest;
        common := numbers[greatest(i, j)];
        call tsql.make_operator(op.sign, op.name, numbers[i], numbers[j], common, format(case
          when common = 'numeric' and op.sign = '/' then 'tsql.undeclared_quotient(l::%1$s, r::%1$s)'
          when common = 'numeric' and op.sign = '*' then 'tsql.exact_product(l::%1$s * r::%1$s)'
          else '(l::%1$s %2$s r::%1$s)' end, common, op.plain));
      end loop;
      for side in select * from (values ('boolean', format('%%s::integer::%s', numbers[i])),
        ('text', format('tsql.%I(%%s)', readers[i]))) as sides (type, value)
      loop
        continue when i > op.highest or op.highest = 3 and side.type = 'text';
        common := case op.highest when 3 then op.plain else format('operator(tsql.%s)', op.plain) end;
        call tsql.make_operator(op.sign, op.name, side.type, numbers[i], numbers[i],
          format('(%s %s r)', format(side.value, 'l'), common));
        call tsql.make_operator(op.sign, op.name, numbers[i], side.type, numbers[i],
          format('(l %s %s)', common, format(side.value, 'r')));
      end loop;
    end loop;
    for j in i .. 6 loop
      -- a real with a real, an int or a decimal: reals are compared
      common := case when j = 5 then '%s::real' else '%s' end;
      call tsql.make_comparisons(numbers[i], numbers[j], common, common);
    end loop;
    call tsql.make_comparisons('text', numbers[i], format('tsql.%I(%%s)', readers[i]), '%s');
    call tsql.make_comparisons('boolean', numbers[i], format('%%s::integer::%s', numbers[i]), '%s');
  end loop;
end
$$;
call tsql.make_operator('&', 'bit_and', 'boolean', 'boolean', 'boolean', '((l::integer & r::integer) <> 0)');
call tsql.make_operator('|', 'bit_or', 'boolean', 'boolean', 'boolean', '((l::integer | r::integer) <> 0)');
call tsql.make_operator('^', 'bit_xor', 'boolean', 'boolean', 'boolean', '((l::integer # r::integer) <> 0)');

-- comparisons of texts and of bytes ignore trailing blanks and zeros. Those of varchar and bpchar are defined explicitly:
-- otherwise PostgreSQL could not choose between those of domains (sys.sysname)
do $$
declare
  texts constant text[] := array['text', 'varchar', 'bpchar'];
begin
  for i in 1 .. 3 loop
    for j in i .. 3 loop
      call tsql.make_comparisons(texts[i], texts[j],
        'pg_catalog.rtrim(%s::text, '' '')', 'pg_catalog.rtrim(%s::text, '' '')');
    end loop;
  end loop;
end
$$;
call tsql.make_comparisons('bytea', 'bytea',
  'pg_catalog.rtrim(%s, ''\x00''::bytea)', 'pg_catalog.rtrim(%s, ''\x00''::bytea)');
-- bytes become a text, which has the higher precedence
call tsql.make_comparisons('bytea', 'text', 'tsql.text_of(%s)', '%s', 'tsql');
call tsql.make_comparisons('bytea', 'integer', 'tsql.to_int(%s)', '%s');
call tsql.make_comparisons('boolean', 'boolean', '%s', '%s');
call tsql.make_comparisons('boolean', 'text', '%s', 'tsql.read_bit(%s)');

-- comparisons of times
call tsql.make_comparisons('time', 'time', '%s', '%s');
call tsql.make_comparisons('time', 'text', '%s', 'tsql.moment(%s)::time');
call tsql.make_comparisons('date', 'date', '%s', '%s');
call tsql.make_comparisons('date', 'text', '%s', 'tsql.moment(%s)::date');
call tsql.make_comparisons('date', 'timestamp', '%s', '%s');
call tsql.make_comparisons('date', 'timestamptz', 'tsql.instant(%s)', '%s');
call tsql.make_comparisons('timestamp', 'timestamp', '%s', '%s');
call tsql.make_comparisons('timestamp', 'text', '%s', 'tsql.moment(%s)');
call tsql.make_comparisons('timestamp', 'timestamptz', 'tsql.instant(%s)', '%s');
call tsql.make_comparisons('timestamptz', 'timestamptz', '%s', '%s');
call tsql.make_comparisons('timestamptz', 'text', '%s', 'tsql.instant(tsql.moment(%s))');
do $$
declare
  other text;
begin
  foreach other in array array['boolean', 'integer', 'numeric', 'double precision'] loop
    call tsql.make_comparisons('timestamp', other, '%s', 'tsql.to_datetime(%s)');
    call tsql.make_comparisons('timestamptz', other, '%s', 'tsql.instant(tsql.moment(%s))');
    call tsql.make_comparisons('tsql.smalldatetime', other, '%s::timestamp', 'tsql.to_smalldatetime(%s)');
  end loop;
  -- the other operand of a datetime or smalldatetime column is converted to its type, and rounded
  foreach other in array array['text', 'varchar', 'bpchar'] loop
    call tsql.make_comparisons('tsql.datetime', other, '%s::timestamp', 'tsql.to_datetime(%s::text)');
    call tsql.make_comparisons('tsql.smalldatetime', other, '%s::timestamp', 'tsql.to_smalldatetime(%s::text)');
  end loop;
end
$$;

-- comparisons of guids
do $$
declare
  op record;
  side record;
begin
  for op in select * from (values ('=', 'eq', '%s'), ('<>', 'ne', '%s'), ('<', 'lt', 'tsql.guid_key(%s)'),
    ('<=', 'le', 'tsql.guid_key(%s)'), ('>', 'gt', 'tsql.guid_key(%s)'), ('>=', 'ge', 'tsql.guid_key(%s)'))
    as ops (sign, name, key)
  loop
    for side in select * from (values
      ('uuid', 'uuid', 'l', 'r'), ('uuid', 'text', 'l', 'tsql.read_guid(r)'), ('text', 'uuid', 'tsql.read_guid(l)', 'r')
    ) as sides (l, r, left_value, right_value)
    loop
      call tsql.make_operator(op.sign, op.name, side.l, side.r, 'boolean',
        format('(%s %s %s)', format(op.key, side.left_value), op.sign, format(op.key, side.right_value)));
    end loop;
  end loop;
end
$$;

-- operators that T-SQL lacks and for which PostgreSQL would convert a date to a timestamp
do $$
declare
  of record;
begin
  for of in
    select sign, signs.name, l, r, number, message,
      case when plain in ('+', '-', '*', '/', '%') then 'timestamp' else 'boolean' end as result
    from tsql.refused_operators()
    join (values ('=', '=', 'eq'), ('<>', '<>', 'ne'), ('<', '<', 'lt'), ('<=', '<=', 'le'), ('>', '>', 'gt'),
      ('>=', '>=', 'ge'), ('+', '+', 'add'), ('+|', '+', 'sybase_add'), ('-', '-', 'subtract'), ('*', '*', 'multiply'),
      ('/', '/', 'divide'), ('%', '%', 'modulo')
    ) as signs (sign, plain, name) using (plain)
  loop
    call tsql.make_operator(of.sign, of.name, of.l, of.r, of.result,
      format('tsql.refused(%s, %L, null::%s)', of.number, of.message, of.result));
  end loop;
end
$$;

-- concatenation of texts and of bytes
call tsql.make_operator('+', 'add', 'text', 'text', 'text', '(l || r)');
call tsql.make_operator('+', 'add', 'character', 'text', 'text', '(tsql.padded(l) || r)');
call tsql.make_operator('+', 'add', 'text', 'character', 'text', '(l || tsql.padded(r))');
call tsql.make_operator('+', 'add', 'character', 'character', 'text', '(tsql.padded(l) || tsql.padded(r))');
call tsql.make_operator('+', 'add', 'bytea', 'bytea', 'bytea', '(l || r)');
call tsql.make_operator('+|', 'sybase_add', 'text', 'text', 'text',
  'case when l is not null or r is not null then coalesce(l, '''') || coalesce(r, '''') end');
call tsql.make_operator('+|', 'sybase_add', 'character', 'text', 'text', '(tsql.padded(l) operator(tsql.+|) r)');
call tsql.make_operator('+|', 'sybase_add', 'text', 'character', 'text', '(l operator(tsql.+|) tsql.padded(r))');
call tsql.make_operator('+|', 'sybase_add', 'character', 'character', 'text',
  '(tsql.padded(l) operator(tsql.+|) tsql.padded(r))');
call tsql.make_operator('+|', 'sybase_add', 'bytea', 'bytea', 'bytea', '(l || r)');

-- datetimes as days since 1900
do $$
declare
  number text;
  sign text;
begin
  foreach sign in array array['+', '+|'] loop
    foreach number in array array['integer', 'numeric', 'double precision'] loop
      call tsql.make_operator(sign, case sign when '+' then 'add' else 'sybase_add' end, 'timestamp', number,
        'timestamp', 'tsql.days_later(l, r::numeric)');
      call tsql.make_operator(sign, case sign when '+' then 'add' else 'sybase_add' end, number, 'timestamp',
        'timestamp', 'tsql.days_later(r, l::numeric)');
      call tsql.make_operator(sign, case sign when '+' then 'add' else 'sybase_add' end, 'timestamptz', number,
        'timestamp', 'tsql.days_later(l::timestamp, r::numeric)', 'stable');
    end loop;
  end loop;
  foreach number in array array['integer', 'numeric', 'double precision'] loop
    call tsql.make_operator('-', 'subtract', 'timestamp', number, 'timestamp', 'tsql.days_later(l, - r::numeric)');
    call tsql.make_operator('-', 'subtract', number, 'timestamp', 'timestamp',
      'tsql.earlier(tsql.days_later(timestamp ''1900-01-01'', l::numeric), r)');
    call tsql.make_operator('-', 'subtract', 'timestamptz', number, 'timestamp',
      'tsql.days_later(l::timestamp, - r::numeric)', 'stable');
  end loop;
end
$$;
call tsql.make_operator('-', 'subtract', 'timestamp', 'timestamp', 'timestamp',
  '(timestamp ''1900-01-01'' + (l - r))');
call tsql.make_operator('-', 'subtract', 'timestamptz', 'timestamptz', 'timestamp',
  '(timestamp ''1900-01-01'' + (l::timestamp - r::timestamp))', 'stable');
call tsql.make_operator('-', 'subtract', 'timestamp', 'timestamptz', 'timestamp',
  '(timestamp ''1900-01-01'' + (l - r::timestamp))', 'stable');
call tsql.make_operator('-', 'subtract', 'timestamptz', 'timestamp', 'timestamp',
  '(timestamp ''1900-01-01'' + (l::timestamp - r))', 'stable');

-- a datetime column plus days is a datetime, also in a table made by SELECT INTO
do $$
declare
  moment text;
  other text;
  number text;
  sign record;
  later text;
begin
  foreach moment in array array['datetime', 'smalldatetime'] loop
    foreach number in array array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision'] loop
      for sign in select * from (values ('+', 'add', ''), ('+|', 'sybase_add', ''), ('-', 'subtract', '-'))
        as signs (sign, name, minus)
      loop
        later := 'tsql.to_%1$s(tsql.days_later(%2$s::timestamp, %4$s %3$s::numeric))::tsql.%1$s';
        call tsql.make_operator(sign.sign, sign.name, 'tsql.' || moment, number, 'tsql.' || moment,
          format(later, moment, 'l', 'r', sign.minus));
        if sign.sign <> '-' then
          call tsql.make_operator(sign.sign, sign.name, number, 'tsql.' || moment, 'tsql.' || moment,
            format(later, moment, 'r', 'l', sign.minus));
        end if;
      end loop;
    end loop;
    foreach other in array array['datetime', 'smalldatetime'] loop
      call tsql.make_operator('-', 'subtract', 'tsql.' || moment, 'tsql.' || other,
        'tsql.' || least(moment, other),
        format('tsql.to_%1$s(timestamp ''1900-01-01'' + (l::timestamp - r::timestamp))::tsql.%1$s',
          least(moment, other)));
    end loop;
  end loop;
end
$$;
