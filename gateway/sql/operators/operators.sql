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

do $$
declare
  numbers constant text[] := array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision'];
  readers constant text[] := array['to_smallint', 'to_int', 'to_bigint', 'to_numeric', 'to_real', 'to_float'];
  i integer;
  j integer;
  op record;
  number text;
  side record;
  common text;
  l text;
  r text;
begin
  -- operators between numbers
  for i in 1 .. 6 loop
    for j in 1 .. 6 loop
      common := numbers[greatest(i, j)];
      l := format('l::%s', common);
      r := format('r::%s', common);
      for op in select * from (values ('+', 'add', '+'), ('-', 'subtract', '-'), ('*', 'multiply', '*'),
        ('/', 'divide', '/'), ('%', 'modulo', '%'), ('+|', 'sybase_add', '+')) as ops (sign, name, plain)
      loop
        continue when op.sign = '%' and greatest(i, j) > 4;
        call tsql.make_operator(op.sign, op.name, numbers[i], numbers[j], common,
          case when common = 'numeric' and op.sign = '/' then format('tsql.undeclared_quotient(%s, %s)', l, r)
            when common = 'numeric' and op.sign = '*' then format('tsql.exact_product(%s * %s)', l, r)
            else format('(%s %s %s)', l, op.plain, r) end);
      end loop;
      -- comparisons of a real with a real, an int or a decimal compare reals
      if 5 in (i, j) and greatest(i, j) = 5 then
        null;
      else
        l := 'l';
        r := 'r';
      end if;
      for op in select * from (values ('=', 'eq'), ('<>', 'ne'), ('<', 'lt'), ('<=', 'le'), ('>', 'gt'), ('>=', 'ge'))
        as ops (sign, name)
      loop
        call tsql.make_operator(op.sign, op.name, numbers[i], numbers[j], 'boolean',
          format('(%s %s %s)', l, op.sign, r));
      end loop;
      if greatest(i, j) <= 3 then
        for op in select * from (values ('&', 'bit_and', '&'), ('|', 'bit_or', '|'), ('^', 'bit_xor', '#'))
          as ops (sign, name, plain)
        loop
          call tsql.make_operator(op.sign, op.name, numbers[i], numbers[j], common,
            format('(l::%s %s r::%s)', common, op.plain, common));
        end loop;
      end if;
    end loop;
  end loop;
  for i in 1 .. 6 loop
    for op in select * from (values ('+', 'add', '+'), ('-', 'subtract', '-'), ('*', 'multiply', '*'),
      ('/', 'divide', '/'), ('%', 'modulo', '%'), ('+|', 'sybase_add', '+')) as ops (sign, name, plain)
    loop
      continue when op.sign = '%' and i > 4;
      -- operators between a text and a number
      call tsql.make_operator(op.sign, op.name, 'text', numbers[i], numbers[i],
        format('(tsql.%I(l) operator(tsql.%s) r)', readers[i], op.plain));
      call tsql.make_operator(op.sign, op.name, numbers[i], 'text', numbers[i],
        format('(l operator(tsql.%s) tsql.%I(r))', op.plain, readers[i]));
      -- operators between a bit and a number
      common := numbers[i];
      call tsql.make_operator(op.sign, op.name, 'boolean', numbers[i], common,
        format('(l::integer::%s operator(tsql.%s) r)', common, op.plain));
      call tsql.make_operator(op.sign, op.name, numbers[i], 'boolean', common,
        format('(l operator(tsql.%s) r::integer::%s)', op.plain, common));
    end loop;
    for op in select * from (values ('=', 'eq'), ('<>', 'ne'), ('<', 'lt'), ('<=', 'le'), ('>', 'gt'), ('>=', 'ge'))
      as ops (sign, name)
    loop
      call tsql.make_operator(op.sign, op.name, 'text', numbers[i], 'boolean',
        format('(tsql.%I(l) %s r)', readers[i], op.sign));
      call tsql.make_operator(op.sign, op.name, numbers[i], 'text', 'boolean',
        format('(l %s tsql.%I(r))', op.sign, readers[i]));
      call tsql.make_operator(op.sign, op.name, 'boolean', numbers[i], 'boolean',
        format('(l::integer::%s %s r)', numbers[i], op.sign));
      call tsql.make_operator(op.sign, op.name, numbers[i], 'boolean', 'boolean',
        format('(l %s r::integer::%s)', op.sign, numbers[i]));
    end loop;
  end loop;
  for op in select * from (values ('&', 'bit_and', '&'), ('|', 'bit_or', '|'), ('^', 'bit_xor', '#'))
    as ops (sign, name, plain)
  loop
    call tsql.make_operator(op.sign, op.name, 'boolean', 'boolean', 'boolean',
      format('((l::integer %s r::integer) <> 0)', op.plain));
    for i in 1 .. 3 loop
      call tsql.make_operator(op.sign, op.name, 'boolean', numbers[i], numbers[i],
        format('(l::integer::%s %s r)', numbers[i], op.plain));
      call tsql.make_operator(op.sign, op.name, numbers[i], 'boolean', numbers[i],
        format('(l %s r::integer::%s)', op.plain, numbers[i]));
    end loop;
  end loop;

  -- comparisons of the other types
  for op in select * from (values ('=', 'eq'), ('<>', 'ne'), ('<', 'lt'), ('<=', 'le'), ('>', 'gt'), ('>=', 'ge'))
    as ops (sign, name)
  loop
    -- trailing blanks are ignored
    call tsql.make_operator(op.sign, op.name, 'text', 'text', 'boolean',
      format('(pg_catalog.rtrim(l, '' '') %s pg_catalog.rtrim(r, '' ''))', op.sign));
    -- defined explicitly: otherwise PostgreSQL could not choose between those of domains (sys.sysname)
    for i in 1 .. 3 loop
      for j in 1 .. 3 loop
        continue when i = 1 and j = 1;
        call tsql.make_operator(op.sign, op.name, (array['text', 'varchar', 'bpchar'])[i],
          (array['text', 'varchar', 'bpchar'])[j], 'boolean',
          format('(pg_catalog.rtrim(l::text, '' '') %s pg_catalog.rtrim(r::text, '' ''))', op.sign));
      end loop;
    end loop;
    call tsql.make_operator(op.sign, op.name, 'boolean', 'boolean', 'boolean', format('(l %s r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'boolean', 'text', 'boolean',
      format('(l %s tsql.read_bit(r))', op.sign));
    call tsql.make_operator(op.sign, op.name, 'text', 'boolean', 'boolean',
      format('(tsql.read_bit(l) %s r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'bytea', 'bytea', 'boolean',
      format('(pg_catalog.rtrim(l, ''\x00''::bytea) %s pg_catalog.rtrim(r, ''\x00''::bytea))', op.sign));
    -- bytes become a text, which has the higher precedence
    call tsql.make_operator(op.sign, op.name, 'bytea', 'text', 'boolean',
      format('(tsql.text_of(l) operator(tsql.%s) r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'text', 'bytea', 'boolean',
      format('(l operator(tsql.%s) tsql.text_of(r))', op.sign));
    call tsql.make_operator(op.sign, op.name, 'bytea', 'integer', 'boolean', format('(tsql.to_int(l) %s r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'integer', 'bytea', 'boolean', format('(l %s tsql.to_int(r))', op.sign));
    call tsql.make_operator(op.sign, op.name, 'time', 'time', 'boolean', format('(l %s r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'time', 'text', 'boolean',
      format('(l %s tsql.moment(r)::time)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'text', 'time', 'boolean',
      format('(tsql.moment(l)::time %s r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'date', 'text', 'boolean',
      format('(l %s tsql.moment(r)::date)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'text', 'date', 'boolean',
      format('(tsql.moment(l)::date %s r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'timestamp', 'text', 'boolean',
      format('(l %s tsql.moment(r))', op.sign));
    call tsql.make_operator(op.sign, op.name, 'text', 'timestamp', 'boolean',
      format('(tsql.moment(l) %s r)', op.sign));
    call tsql.make_operator(op.sign, op.name, 'timestamptz', 'text', 'boolean',
      format('(l %s tsql.instant(tsql.moment(r)))', op.sign));
    call tsql.make_operator(op.sign, op.name, 'text', 'timestamptz', 'boolean',
      format('(tsql.instant(tsql.moment(l)) %s r)', op.sign));
    foreach number in array array['boolean', 'integer', 'numeric', 'double precision'] loop
      call tsql.make_operator(op.sign, op.name, 'timestamp', number, 'boolean',
        format('(l %s tsql.to_datetime(r))', op.sign));
      call tsql.make_operator(op.sign, op.name, number, 'timestamp', 'boolean',
        format('(tsql.to_datetime(l) %s r)', op.sign));
      call tsql.make_operator(op.sign, op.name, 'timestamptz', number, 'boolean',
        format('(l %s tsql.instant(tsql.moment(r)))', op.sign));
      call tsql.make_operator(op.sign, op.name, number, 'timestamptz', 'boolean',
        format('(tsql.instant(tsql.moment(l)) %s r)', op.sign));
    end loop;
    for i in 1 .. 3 loop
      for j in 1 .. 3 loop
        call tsql.make_operator(op.sign, op.name, (array['date', 'timestamp', 'timestamptz'])[i],
          (array['date', 'timestamp', 'timestamptz'])[j], 'boolean',
          format(case when i < 3 and j = 3 then '(tsql.instant(l) %s r)' when i = 3 and j < 3 then '(l %s tsql.instant(r))'
            else '(l %s r)' end, op.sign));
      end loop;
    end loop;
    for side in select * from (values
      ('uuid', 'uuid', 'l', 'r'), ('uuid', 'text', 'l', 'tsql.read_guid(r)'), ('text', 'uuid', 'tsql.read_guid(l)', 'r')
    ) as sides (l, r, left_value, right_value)
    loop
      call tsql.make_operator(op.sign, op.name, side.l, side.r, 'boolean',
        format(case when op.sign in ('=', '<>') then '(%s %s %s)' else '(tsql.guid_key(%s) %s tsql.guid_key(%s))' end,
          side.left_value, op.sign, side.right_value));
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

-- the other operand of a datetime or smalldatetime column is converted to its type, and rounded
do $$
declare
  of record;
  sides record;
  number text;
begin
  for of in select * from (values ('=', 'eq'), ('<>', 'ne'), ('<', 'lt'), ('<=', 'le'), ('>', 'gt'), ('>=', 'ge'))
    as ops (sign, name)
  loop
    for sides in
      select moments.type as moment, texts.type as text
      from unnest('{datetime,smalldatetime}'::text[]) as moments (type)
      cross join unnest('{text,varchar,bpchar}'::text[]) as texts (type)
    loop
      call tsql.make_operator(of.sign, of.name, 'tsql.' || sides.moment, sides.text, 'boolean',
        format('(l::timestamp %s tsql.to_%s(r::text))', of.sign, sides.moment));
      call tsql.make_operator(of.sign, of.name, sides.text, 'tsql.' || sides.moment, 'boolean',
        format('(tsql.to_%s(l::text) %s r::timestamp)', sides.moment, of.sign));
    end loop;
    foreach number in array array['boolean', 'integer', 'numeric', 'double precision'] loop
      call tsql.make_operator(of.sign, of.name, 'tsql.smalldatetime', number, 'boolean',
        format('(l::timestamp %s tsql.to_smalldatetime(r))', of.sign));
      call tsql.make_operator(of.sign, of.name, number, 'tsql.smalldatetime', 'boolean',
        format('(tsql.to_smalldatetime(l) %s r::timestamp)', of.sign));
    end loop;
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

-- the first argument that is not null, in the type of the first (isnull) or in the type of higher precedence (coalesce)
do $$
declare
  types constant text[] := array['text', 'boolean', 'smallint', 'integer', 'bigint', 'numeric', 'real',
    'double precision', 'timestamp', 'timestamptz'];
  readers constant text[] := array['text_of', 'to_bit', 'to_smallint', 'to_int', 'to_bigint', 'to_numeric', 'to_real',
    'to_float', 'moment', 'moment'];
  i integer;
  j integer;
  higher integer;
  to_first text;
  l text;
  r text;
begin
  for i in 1 .. 10 loop
    for j in 1 .. 10 loop
      -- a number is converted to a datetime implicitly, a datetime to a number only explicitly
      continue when greatest(i, j) = 10 and least(i, j) between 2 and 8;
      if greatest(i, j) = 9 and least(i, j) between 2 and 8 then
        if i = 9 then
          execute format('create or replace function tsql.isnull(l timestamp, r %s) returns timestamp language sql'
            ' immutable parallel safe return coalesce(l, tsql.to_datetime(r))', types[j]);
        end if;
        execute format('create or replace function tsql.either(l %s, r %s) returns timestamp language sql immutable'
          ' parallel safe return coalesce(%s, %s)', types[i], types[j],
          case i when 9 then 'l' else 'tsql.to_datetime(l)' end, case j when 9 then 'r' else 'tsql.to_datetime(r)' end);
        continue;
      end if;
      to_first := case when i = j then 'r' when i = 10 then 'tsql.moment(r)::timestamptz'
        when (i, j) = (9, 10) then 'r::timestamp' else format('tsql.%I(r)', readers[i]) end;
      execute format('create or replace function tsql.isnull(l %s, r %s) returns %s language sql %s parallel safe'
        ' return coalesce(l, %s)', types[i], types[j], types[i],
        case when 10 in (i, j) then 'stable' else 'immutable' end, to_first);
      higher := greatest(i, j);
      l := case when i = higher then 'l' when higher = 10 then 'tsql.moment(l)::timestamptz'
        else format('tsql.%I(l)', readers[higher]) end;
      r := case when j = higher then 'r' when higher = 10 then 'tsql.moment(r)::timestamptz'
        else format('tsql.%I(r)', readers[higher]) end;
      execute format('create or replace function tsql.either(l %s, r %s) returns %s language sql %s parallel safe'
        ' return coalesce(%s, %s)', types[i], types[j], types[higher],
        case when higher = 10 then 'stable' else 'immutable' end, l, r);
    end loop;
  end loop;
end
$$;
-- a char keeps its trailing blanks
create or replace function tsql.isnull(l bpchar, r bpchar) returns bpchar
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l bpchar, r text) returns bpchar
language sql immutable parallel safe return coalesce(l, r::bpchar);
create or replace function tsql.isnull(l bpchar, r text, length integer) returns bpchar
language sql immutable parallel safe return coalesce(l, rpad(tsql.within(r, length), coalesce(length, length(r)))::bpchar);
create or replace function tsql.isnull(l text, r text, length integer) returns text
language sql immutable parallel safe return coalesce(l, tsql.within(r, length));
create or replace function tsql.isnull(l anyelement, r text, length integer) returns anyelement
language sql stable parallel safe as $$ select tsql.isnull(l, r) $$;
comment on function tsql.isnull(anyelement, text, integer) is 'ISNULL of a column with a text as its replacement, cut to the column''s length.';
create or replace function tsql.either(l bpchar, r bpchar) returns bpchar
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l bpchar, r text) returns text
language sql immutable parallel safe return coalesce(tsql.text_of(l), r);
create or replace function tsql.either(l text, r bpchar) returns text
language sql immutable parallel safe return coalesce(l, tsql.text_of(r));
create or replace function tsql.with_blanks(value anyelement) returns anyelement
language sql immutable parallel safe as 'select value';
create or replace function tsql.with_blanks(value text) returns text
language sql immutable parallel safe return value;
create or replace function tsql.with_blanks(value bpchar) returns text
language sql immutable parallel safe return tsql.text_of(value);
comment on function tsql.with_blanks(anyelement) is
  'A char as text with its blanks, which PostgreSQL''s cast would remove; values of other types are unchanged.';
-- A value as the domain of `other`, where PostgreSQL would use the base type: NULL combined with a value, and a whole
-- number combined with money. Only the type of `other` matters.
create or replace function tsql.null_of(other anyelement) returns anyelement
language sql immutable parallel safe as 'select case when false then other end';
create or replace function tsql.beside(value anyelement, other anycompatible) returns anyelement
language sql immutable parallel safe as 'select value';
do $$
declare
  whole text;
  other text;
begin
  foreach whole in array array['smallint', 'integer', 'bigint'] loop
    foreach other in array array['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'tsql.money',
      'tsql.smallmoney'] loop
      execute format('create or replace function tsql.beside(value %s, other %s) returns %s language sql immutable'
        ' parallel safe return %s', whole, other, case when other like '%money' then other else whole end,
        case when other like '%money' then replace(other, '.', '.to_') || '(value)' else 'value' end);
    end loop;
  end loop;
end
$$;
-- money and whole numbers give money
do $$
declare
  l text;
  r text;
begin
  foreach l in array array['tsql.money', 'tsql.smallmoney'] loop
    foreach r in array array['tsql.money', 'tsql.smallmoney', 'tsql.tinyint', 'smallint', 'integer', 'bigint', 'numeric',
      'double precision', 'text', 'varchar'] loop
      execute format('create or replace function tsql.isnull(l %1$s, r %2$s) returns %1$s language sql immutable'
        ' parallel safe return coalesce(l, tsql.to_%3$s(r))', l, r, substr(l, 6));
      continue when r in ('numeric', 'double precision', 'text', 'varchar');
      execute format('create or replace function tsql.either(l %s, r %s) returns tsql.money language sql immutable'
        ' parallel safe return coalesce(l::tsql.money, tsql.to_money(r))', l, r);
      continue when r like '%money';
      execute format('create or replace function tsql.either(l %s, r %s) returns tsql.money language sql immutable'
        ' parallel safe return coalesce(tsql.to_money(l), r::tsql.money)', r, l);
    end loop;
  end loop;
end
$$;
-- the length of a text column, to which ISNULL converts a number; null for other columns
do $$
declare
  r text;
begin
  foreach r in array array['boolean', 'smallint', 'integer', 'bigint', 'numeric', 'tsql.money', 'tsql.smallmoney', 'real',
    'double precision', 'uuid'] loop
    execute format('create or replace function tsql.isnull(l text, r %s, length integer, is_national boolean) returns text'
      ' language sql immutable parallel safe return coalesce(l, case when length is null then tsql.text_of(r) else %s end)', r,
      case when r in ('boolean', 'smallint', 'integer')
        then 'case when is_national then tsql.to_nvarchar(r, length) else tsql.to_varchar(r, length) end'
        else 'tsql.to_varchar(r, length)' end);
    execute format('create or replace function tsql.isnull(l bpchar, r %s, length integer, is_national boolean) returns bpchar'
      ' language sql immutable parallel safe'
      ' return tsql.isnull(l, tsql.isnull(null::text, r, length, is_national), length)', r);
  end loop;
end
$$;
create or replace function tsql.isnull(l text, r anycompatible, length integer, is_national boolean) returns text
language sql stable parallel safe
as $$ select coalesce(l, tsql.within(tsql.text_of(r), length)) $$;
create or replace function tsql.isnull(l bpchar, r bpchar, length integer, is_national boolean) returns bpchar
language sql immutable parallel safe return tsql.isnull(l, r::text, length);
create or replace function tsql.isnull(l anyelement, r anycompatible, length integer, is_national boolean) returns anyelement
language sql stable parallel safe as $$ select tsql.isnull(l, r) $$;
comment on function tsql.isnull(anyelement, anycompatible, integer, boolean) is
  'ISNULL of a column, with the length of a text column (null: none) and whether it is national.';
create or replace function tsql.isnull(l date, r date) returns date
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l date, r text) returns date
language sql immutable parallel safe return coalesce(l, tsql.moment(r)::date);
create or replace function tsql.isnull(l time, r time) returns time
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l time, r text) returns time
language sql immutable parallel safe return coalesce(l, tsql.moment(r)::time);
create or replace function tsql.isnull(l bytea, r bytea) returns bytea
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l uuid, r uuid) returns uuid
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.isnull(l uuid, r text) returns uuid
language sql immutable parallel safe return coalesce(l, tsql.read_guid(r));
create or replace function tsql.either(l uuid, r uuid) returns uuid
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l uuid, r text) returns uuid
language sql immutable parallel safe return coalesce(l, tsql.read_guid(r));
create or replace function tsql.either(l text, r uuid) returns uuid
language sql immutable parallel safe return coalesce(tsql.read_guid(l), r);
create or replace function tsql.either(l bytea, r bytea) returns bytea
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l date, r date) returns date
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l date, r text) returns date
language sql immutable parallel safe return coalesce(l, tsql.moment(r)::date);
create or replace function tsql.either(l text, r date) returns date
language sql immutable parallel safe return coalesce(tsql.moment(l)::date, r);
create or replace function tsql.either(l date, r timestamp) returns timestamp
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l timestamp, r date) returns timestamp
language sql immutable parallel safe return coalesce(l, r);
create or replace function tsql.either(l time, r time) returns time
language sql immutable parallel safe return coalesce(l, r);

-- a key of ORDER BY whose type the compiler does not know; PostgreSQL inlines the bodies, so that an index on a column can
-- be used
create or replace function tsql.ordered(value anyelement) returns anyelement
language sql immutable parallel safe as 'select value';
do $$
declare
  type_ text;
begin
  -- bodies of standard SQL (return …) are parsed when they are created, which makes planning faster
  foreach type_ in array array['boolean', 'smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision', 'text',
    'date', 'time', 'timestamp', 'timestamptz']
  loop
    execute format('create or replace function tsql.ordered(value %1$s) returns %1$s'
      ' language sql immutable parallel safe return value', type_);
  end loop;
end
$$;
create or replace function tsql.ordered(value uuid) returns uuid
language sql immutable parallel safe return tsql.guid_key(value);

create or replace function tsql.lesser(l uuid, r uuid) returns uuid
language sql immutable strict parallel safe return case when tsql.guid_key(r) < tsql.guid_key(l) then r else l end;
create or replace function tsql.greater(l uuid, r uuid) returns uuid
language sql immutable strict parallel safe return case when tsql.guid_key(r) > tsql.guid_key(l) then r else l end;
create or replace aggregate tsql.min(uuid) (sfunc = tsql.lesser, stype = uuid);
create or replace aggregate tsql.max(uuid) (sfunc = tsql.greater, stype = uuid);
-- the same names for all types, for values whose type the compiler does not know; an index on a column can be used too
do $$
declare
  of record;
begin
  for of in
    select aggfnoid, proname, proargtypes[0]::regtype as type, aggtransfn, aggcombinefn, aggsortop
    from pg_aggregate
    join pg_proc on pg_proc.oid = aggfnoid
    join pg_type on pg_type.oid = proargtypes[0]
    where proname in ('min', 'max') and pronamespace = 'pg_catalog'::regnamespace and pronargs = 1
      and typtype <> 'p' and proargtypes[0] <> 'uuid'::regtype
  loop
    execute format('create or replace aggregate tsql.%I(%s) (sfunc = %s, stype = %s, combinefunc = %s,'
      ' sortop = operator(pg_catalog.%s), parallel = safe)', of.proname, of.type, of.aggtransfn, of.type, of.aggcombinefn,
      case of.proname when 'min' then '<' else '>' end);
  end loop;
end
$$;
do $$
declare
  of record;
begin
  for of in select * from unnest(array['money', 'smallmoney']) as type
    cross join (values ('max', 'larger'), ('min', 'smaller')) as functions (name, other)
  loop
    execute format('create or replace function tsql.as_%1$s(value numeric) returns tsql.%1$s language sql immutable strict'
      ' parallel safe return value::tsql.%1$s', of.type);
    execute format('create or replace aggregate tsql.%I(tsql.%s) (sfunc = numeric_%s, stype = numeric,'
      ' finalfunc = tsql.as_%2$s, combinefunc = numeric_%3$s, parallel = safe)', of.name, of.type, of.other);
  end loop;
end
$$;
create or replace function tsql.least(variadic guids uuid[]) returns uuid
language sql immutable parallel safe return (select tsql.min(guid) from unnest(guids) as guid);
create or replace function tsql.greatest(variadic guids uuid[]) returns uuid
language sql immutable parallel safe return (select tsql.max(guid) from unnest(guids) as guid);
