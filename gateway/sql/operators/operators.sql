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
    from unnest('{smallint,integer,bigint,numeric,real,double precision,tsql.money,tsql.smallmoney}'::text[]) as type
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
  sides record;
begin
  for sides in
    select l, r
    from unnest('{tsql.money,tsql.smallmoney,tsql.tinyint,smallint,integer,bigint}'::text[]) as l
    cross join unnest('{tsql.money,tsql.smallmoney,tsql.tinyint,smallint,integer,bigint}'::text[]) as r
    where l like '%money' or r like '%money'
  loop
    call tsql.make_each('{{+,add,+},{-,subtract,-},{*,multiply,*},{%,modulo,%},{+|,sybase_add,+}}', format(
      $each$call tsql.make_operator('%%s', '%%s', '%s', '%s', 'tsql.money', 'tsql.to_money(l::numeric %%s r::numeric)')$each$,
      sides.l, sides.r));
    call tsql.make_operator('/', 'divide', sides.l, sides.r, 'tsql.money',
      'tsql.to_money(tsql.quotient(l::numeric, r::numeric, 4))');
  end loop;
end
$$;
-- operators between tinyints return tinyint
call tsql.make_each('{{+,add},{-,subtract},{*,multiply},{/,divide},{%,modulo}}', $$
call tsql.make_operator('%1$s', '%2$s', 'tsql.tinyint', 'tsql.tinyint', 'tsql.tinyint',
  'tsql.as_tinyint(least(l::integer %1$s r::integer, 256)::smallint)')$$);

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
call tsql.make_each('{{&,bit_and,&},{|,bit_or,|},{^,bit_xor,#}}', $$
call tsql.make_operator('%s', '%s', 'boolean', 'boolean', 'boolean', '((l::integer %s r::integer) <> 0)')$$);

-- comparisons of texts and of bytes ignore trailing blanks and zeros. Those of varchar and bpchar are defined explicitly:
-- otherwise PostgreSQL could not choose between those of domains (sys.sysname)
call tsql.make_each('{{text,text},{text,varchar},{text,bpchar},{varchar,varchar},{varchar,bpchar},{bpchar,bpchar}}', $$
call tsql.make_comparisons('%s', '%s',
  'pg_catalog.rtrim(%%s::text, '' '')', 'pg_catalog.rtrim(%%s::text, '' '')')$$);
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
call tsql.make_each('{boolean,integer,numeric,double precision}', $$
call tsql.make_comparisons('timestamp', '%1$s', '%%s', 'tsql.to_datetime(%%s)');
call tsql.make_comparisons('timestamptz', '%1$s', '%%s', 'tsql.instant(tsql.moment(%%s))');
call tsql.make_comparisons('tsql.smalldatetime', '%1$s', '%%s::timestamp', 'tsql.to_smalldatetime(%%s)')$$);
-- the other operand of a datetime or smalldatetime column is converted to its type, and rounded
call tsql.make_each('{text,varchar,bpchar}', $$
call tsql.make_comparisons('tsql.datetime', '%1$s', '%%s::timestamp', 'tsql.to_datetime(%%s::text)');
call tsql.make_comparisons('tsql.smalldatetime', '%1$s', '%%s::timestamp', 'tsql.to_smalldatetime(%%s::text)')$$);

-- comparisons of guids
call tsql.make_each('{{=,eq},{<>,ne}}', $$
call tsql.make_operator('%1$s', '%2$s', 'uuid', 'uuid', 'boolean', '(l %1$s r)');
call tsql.make_operator('%1$s', '%2$s', 'uuid', 'text', 'boolean', '(l %1$s tsql.read_guid(r))');
call tsql.make_operator('%1$s', '%2$s', 'text', 'uuid', 'boolean', '(tsql.read_guid(l) %1$s r)')$$);
call tsql.make_each('{{<,lt},{<=,le},{>,gt},{>=,ge}}', $$
call tsql.make_operator('%1$s', '%2$s', 'uuid', 'uuid', 'boolean', '(tsql.guid_key(l) %1$s tsql.guid_key(r))');
call tsql.make_operator('%1$s', '%2$s', 'uuid', 'text', 'boolean', '(tsql.guid_key(l) %1$s tsql.guid_key(tsql.read_guid(r)))');
call tsql.make_operator('%1$s', '%2$s', 'text', 'uuid', 'boolean', '(tsql.guid_key(tsql.read_guid(l)) %1$s tsql.guid_key(r))')$$);

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
call tsql.make_each(array[['text', 'text', 'text', '(l || r)'], ['character', 'text', 'text', '(tsql.padded(l) || r)'],
  ['text', 'character', 'text', '(l || tsql.padded(r))'], ['character', 'character', 'text', '(tsql.padded(l) || tsql.padded(r))'],
  ['bytea', 'bytea', 'bytea', '(l || r)']
], $$call tsql.make_operator('+', 'add', '%s', '%s', '%s', '%s')$$);
call tsql.make_each(array[
  ['text', 'text', 'text', 'case when l is not null or r is not null then coalesce(l, '''') || coalesce(r, '''') end'],
  ['character', 'text', 'text', '(tsql.padded(l) operator(tsql.+|) r)'],
  ['text', 'character', 'text', '(l operator(tsql.+|) tsql.padded(r))'],
  ['character', 'character', 'text', '(tsql.padded(l) operator(tsql.+|) tsql.padded(r))'], ['bytea', 'bytea', 'bytea', '(l || r)']
], $$call tsql.make_operator('+|', 'sybase_add', '%s', '%s', '%s', %L)$$);

-- datetimes as days since 1900
call tsql.make_each('{integer,numeric,double precision}', $$
call tsql.make_each('{{+,add},{+|,sybase_add}}', $sums$
call tsql.make_operator('%%1$s', '%%2$s', 'timestamp', '%1$s', 'timestamp', 'tsql.days_later(l, r::numeric)');
call tsql.make_operator('%%1$s', '%%2$s', '%1$s', 'timestamp', 'timestamp', 'tsql.days_later(r, l::numeric)');
call tsql.make_operator('%%1$s', '%%2$s', 'timestamptz', '%1$s', 'timestamp', 'tsql.days_later(l::timestamp, r::numeric)',
  'stable')$sums$);
call tsql.make_operator('-', 'subtract', 'timestamp', '%1$s', 'timestamp', 'tsql.days_later(l, - r::numeric)');
call tsql.make_operator('-', 'subtract', '%1$s', 'timestamp', 'timestamp',
  'tsql.earlier(tsql.days_later(timestamp ''1900-01-01'', l::numeric), r)');
call tsql.make_operator('-', 'subtract', 'timestamptz', '%1$s', 'timestamp', 'tsql.days_later(l::timestamp, - r::numeric)',
  'stable')$$);
call tsql.make_each('{{timestamp,timestamp,l,r,immutable},{timestamptz,timestamptz,l::timestamp,r::timestamp,stable},
  {timestamp,timestamptz,l,r::timestamp,stable},{timestamptz,timestamp,l::timestamp,r,stable}}', $$
call tsql.make_operator('-', 'subtract', '%s', '%s', 'timestamp', '(timestamp ''1900-01-01'' + (%s - %s))', '%s')$$);

-- a datetime column plus days is a datetime, also in a table made by SELECT INTO
do $$
declare
  later constant text := 'tsql.to_%1$s(tsql.days_later(%2$s::timestamp, %4$s %3$s::numeric))::tsql.%1$s';
  of record;
begin
  for of in
    select moment, 'tsql.' || moment as type, number, sign, name, minus
    from unnest('{datetime,smalldatetime}'::text[]) as moment
    cross join unnest('{smallint,integer,bigint,numeric,real,double precision}'::text[]) as number
    cross join (values ('+', 'add', ''), ('+|', 'sybase_add', ''), ('-', 'subtract', '-')) as signs (sign, name, minus)
  loop
    call tsql.make_operator(of.sign, of.name, of.type, of.number, of.type, format(later, of.moment, 'l', 'r', of.minus));
    if of.sign <> '-' then
      call tsql.make_operator(of.sign, of.name, of.number, of.type, of.type, format(later, of.moment, 'r', 'l', of.minus));
    end if;
  end loop;
end
$$;
call tsql.make_each('{{datetime,datetime,datetime},{datetime,smalldatetime,datetime},{smalldatetime,datetime,datetime},
  {smalldatetime,smalldatetime,smalldatetime}}', $$
call tsql.make_operator('-', 'subtract', 'tsql.%1$s', 'tsql.%2$s', 'tsql.%3$s',
  'tsql.to_%3$s(timestamp ''1900-01-01'' + (l::timestamp - r::timestamp))::tsql.%3$s')$$);
