-- Made from gateway/tsql/src/facts/conversions.rs, where the chart stands: UPDATE_CASES=1 cargo test -p tsql --test
-- facts writes this file anew.

create or replace function tsql.assignment_error(source text, target text, sybase boolean)
returns integer
language sql
immutable
parallel safe
return case
    when not sybase and source = 'bit' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when not sybase and source = 'int' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when not sybase and source = 'numeric' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when not sybase and source = 'float' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when not sybase and source = 'varchar' and target in ('varbinary')
      then 257
    when not sybase and source = 'text' and target in ('bit', 'int', 'numeric', 'float', 'varbinary', 'image', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2', 'sql_variant')
      then 206
    when not sybase and source = 'varbinary' and target in ('float', 'text')
      then 206
    when not sybase and source = 'varbinary' and target in ('date', 'time', 'datetime2')
      then 257
    when not sybase and source = 'image' and target in ('bit', 'int', 'numeric', 'float', 'varchar', 'text', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2', 'xml', 'sql_variant')
      then 206
    when not sybase and source = 'uniqueidentifier' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'datetime', 'date', 'time', 'datetime2', 'xml')
      then 206
    when not sybase and source = 'datetime' and target in ('text', 'image', 'uniqueidentifier', 'xml')
      then 206
    when not sybase and source = 'datetime' and target in ('bit', 'int', 'numeric', 'float', 'varbinary')
      then 257
    when not sybase and source = 'date' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'time', 'xml')
      then 206
    when not sybase and source = 'date' and target in ('varbinary')
      then 257
    when not sybase and source = 'time' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'date', 'xml')
      then 206
    when not sybase and source = 'time' and target in ('varbinary')
      then 257
    when not sybase and source = 'datetime2' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'xml')
      then 206
    when not sybase and source = 'datetime2' and target in ('varbinary')
      then 257
    when not sybase and source = 'xml' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2', 'sql_variant')
      then 206
    when not sybase and source = 'xml' and target in ('varchar', 'varbinary')
      then 257
    when not sybase and source = 'sql_variant' and target in ('text', 'image', 'xml')
      then 206
    when not sybase and source = 'sql_variant' and target in ('bit', 'int', 'numeric', 'float', 'varchar', 'varbinary', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2')
      then 257
    when sybase and source = 'bit' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when sybase and source = 'bit' and target in ('datetime')
      then 257
    when sybase and source = 'int' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when sybase and source = 'int' and target in ('datetime')
      then 257
    when sybase and source = 'numeric' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when sybase and source = 'numeric' and target in ('datetime')
      then 257
    when sybase and source = 'float' and target in ('text', 'image', 'uniqueidentifier', 'date', 'time', 'datetime2', 'xml')
      then 206
    when sybase and source = 'float' and target in ('datetime')
      then 257
    when sybase and source = 'text' and target in ('bit', 'int', 'numeric', 'float', 'varbinary', 'image', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2', 'sql_variant')
      then 206
    when sybase and source = 'varbinary' and target in ('float', 'text')
      then 206
    when sybase and source = 'varbinary' and target in ('datetime', 'date', 'time', 'datetime2')
      then 257
    when sybase and source = 'image' and target in ('bit', 'int', 'numeric', 'float', 'varchar', 'text', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2', 'xml', 'sql_variant')
      then 206
    when sybase and source = 'uniqueidentifier' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'datetime', 'date', 'time', 'datetime2', 'xml')
      then 206
    when sybase and source = 'datetime' and target in ('text', 'image', 'uniqueidentifier', 'xml')
      then 206
    when sybase and source = 'datetime' and target in ('bit', 'int', 'numeric', 'float')
      then 257
    when sybase and source = 'date' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'time', 'xml')
      then 206
    when sybase and source = 'time' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'date', 'xml')
      then 206
    when sybase and source = 'datetime2' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'xml')
      then 206
    when sybase and source = 'xml' and target in ('bit', 'int', 'numeric', 'float', 'text', 'image', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2', 'sql_variant')
      then 206
    when sybase and source = 'xml' and target in ('varchar', 'varbinary')
      then 257
    when sybase and source = 'sql_variant' and target in ('text', 'image', 'xml')
      then 206
    when sybase and source = 'sql_variant' and target in ('bit', 'int', 'numeric', 'float', 'varchar', 'varbinary', 'uniqueidentifier', 'datetime', 'date', 'time', 'datetime2')
      then 257
  end;

comment on function tsql.assignment_error(text, text, boolean) is
'The error of a value of one class of types that is assigned to another, in SQL Server or in ASE; null where it '
'converts by itself.';

create or replace function tsql.fail_assignment(number integer, source text, target text)
returns text
language plpgsql
immutable
as $$
begin
  perform tsql.fail(number, format(case number when 206 then 'Operand type clash: %s is incompatible with %s' else 'Implicit conversion from data type %s to %s is not allowed. Use the CONVERT function to run this query.' end,
    source, target));
  return null;
end
$$;

comment on function tsql.fail_assignment(integer, text, text) is
'Raises an error of tsql.assignment_error.';

create or replace function tsql.refused_operators()
returns table (plain text, l text, r text, number integer, message text)
language sql
immutable
begin atomic
values
  ('=', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('=', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('=', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('=', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('=', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('=', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('=', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('=', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('=', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('=', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('=', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('=', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('=', 'date', 'time', 402, 'The data types date and time are incompatible in the equal to operator.'),
  ('=', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('=', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('=', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('=', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('=', 'time', 'date', 402, 'The data types time and date are incompatible in the equal to operator.'),
  ('=', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the equal to operator.'),
  ('=', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the equal to operator.'),
  ('=', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the equal to operator.'),
  ('=', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the equal to operator.'),
  ('<>', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('<>', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('<>', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('<>', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('<>', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('<>', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('<>', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('<>', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('<>', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('<>', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('<>', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('<>', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('<>', 'date', 'time', 402, 'The data types date and time are incompatible in the not equal to operator.'),
  ('<>', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('<>', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('<>', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('<>', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('<>', 'time', 'date', 402, 'The data types time and date are incompatible in the not equal to operator.'),
  ('<>', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the not equal to operator.'),
  ('<>', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the not equal to operator.'),
  ('<>', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the not equal to operator.'),
  ('<>', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the not equal to operator.'),
  ('<', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('<', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('<', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('<', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('<', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('<', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('<', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('<', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('<', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('<', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('<', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('<', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('<', 'date', 'time', 402, 'The data types date and time are incompatible in the less than operator.'),
  ('<', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('<', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('<', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('<', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('<', 'time', 'date', 402, 'The data types time and date are incompatible in the less than operator.'),
  ('<', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the less than operator.'),
  ('<', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the less than operator.'),
  ('<', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the less than operator.'),
  ('<', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the less than operator.'),
  ('<=', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('<=', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('<=', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('<=', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('<=', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('<=', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('<=', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('<=', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('<=', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('<=', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('<=', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('<=', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('<=', 'date', 'time', 402, 'The data types date and time are incompatible in the less than or equal to operator.'),
  ('<=', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('<=', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('<=', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('<=', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('<=', 'time', 'date', 402, 'The data types time and date are incompatible in the less than or equal to operator.'),
  ('<=', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the less than or equal to operator.'),
  ('<=', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the less than or equal to operator.'),
  ('<=', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the less than or equal to operator.'),
  ('<=', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the less than or equal to operator.'),
  ('>', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('>', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('>', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('>', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('>', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('>', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('>', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('>', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('>', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('>', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('>', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('>', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('>', 'date', 'time', 402, 'The data types date and time are incompatible in the greater than operator.'),
  ('>', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('>', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('>', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('>', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('>', 'time', 'date', 402, 'The data types time and date are incompatible in the greater than operator.'),
  ('>', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the greater than operator.'),
  ('>', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the greater than operator.'),
  ('>', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the greater than operator.'),
  ('>', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the greater than operator.'),
  ('>=', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('>=', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('>=', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('>=', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('>=', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('>=', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('>=', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('>=', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('>=', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('>=', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('>=', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('>=', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('>=', 'date', 'time', 402, 'The data types date and time are incompatible in the greater than or equal to operator.'),
  ('>=', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('>=', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('>=', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('>=', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('>=', 'time', 'date', 402, 'The data types time and date are incompatible in the greater than or equal to operator.'),
  ('>=', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the greater than or equal to operator.'),
  ('>=', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the greater than or equal to operator.'),
  ('>=', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the greater than or equal to operator.'),
  ('>=', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the greater than or equal to operator.'),
  ('+', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('+', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('+', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('+', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('+', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('+', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('+', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('+', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('+', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('+', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('+', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('+', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('+', 'date', 'date', 8117, 'Operand data type date is invalid for add operator.'),
  ('+', 'date', 'time', 402, 'The data types date and time are incompatible in the add operator.'),
  ('+', 'date', 'timestamp', 402, 'The data types date and datetime are incompatible in the add operator.'),
  ('+', 'date', 'timestamptz', 402, 'The data types date and datetime2 are incompatible in the add operator.'),
  ('+', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('+', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('+', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('+', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('+', 'time', 'date', 402, 'The data types time and date are incompatible in the add operator.'),
  ('+', 'time', 'time', 8117, 'Operand data type time is invalid for add operator.'),
  ('+', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the add operator.'),
  ('+', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the add operator.'),
  ('+', 'timestamp', 'date', 402, 'The data types datetime and date are incompatible in the add operator.'),
  ('+', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the add operator.'),
  ('+', 'timestamptz', 'date', 402, 'The data types datetime2 and date are incompatible in the add operator.'),
  ('+', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the add operator.'),
  ('-', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('-', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('-', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('-', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('-', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('-', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('-', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('-', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('-', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('-', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('-', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('-', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('-', 'date', 'date', 8117, 'Operand data type date is invalid for subtract operator.'),
  ('-', 'date', 'time', 402, 'The data types date and time are incompatible in the subtract operator.'),
  ('-', 'date', 'timestamp', 402, 'The data types date and datetime are incompatible in the subtract operator.'),
  ('-', 'date', 'timestamptz', 402, 'The data types date and datetime2 are incompatible in the subtract operator.'),
  ('-', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('-', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('-', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('-', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('-', 'time', 'date', 402, 'The data types time and date are incompatible in the subtract operator.'),
  ('-', 'time', 'time', 8117, 'Operand data type time is invalid for subtract operator.'),
  ('-', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the subtract operator.'),
  ('-', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the subtract operator.'),
  ('-', 'timestamp', 'date', 402, 'The data types datetime and date are incompatible in the subtract operator.'),
  ('-', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the subtract operator.'),
  ('-', 'timestamptz', 'date', 402, 'The data types datetime2 and date are incompatible in the subtract operator.'),
  ('-', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the subtract operator.'),
  ('*', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('*', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('*', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('*', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('*', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('*', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('*', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('*', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('*', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('*', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('*', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('*', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('*', 'date', 'date', 8117, 'Operand data type date is invalid for multiply operator.'),
  ('*', 'date', 'time', 402, 'The data types date and time are incompatible in the multiply operator.'),
  ('*', 'date', 'timestamp', 402, 'The data types date and datetime are incompatible in the multiply operator.'),
  ('*', 'date', 'timestamptz', 402, 'The data types date and datetime2 are incompatible in the multiply operator.'),
  ('*', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('*', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('*', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('*', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('*', 'time', 'date', 402, 'The data types time and date are incompatible in the multiply operator.'),
  ('*', 'time', 'time', 8117, 'Operand data type time is invalid for multiply operator.'),
  ('*', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the multiply operator.'),
  ('*', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the multiply operator.'),
  ('*', 'timestamp', 'date', 402, 'The data types datetime and date are incompatible in the multiply operator.'),
  ('*', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the multiply operator.'),
  ('*', 'timestamptz', 'date', 402, 'The data types datetime2 and date are incompatible in the multiply operator.'),
  ('*', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the multiply operator.'),
  ('/', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('/', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('/', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('/', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('/', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('/', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('/', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('/', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('/', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('/', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('/', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('/', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('/', 'date', 'date', 8117, 'Operand data type date is invalid for divide operator.'),
  ('/', 'date', 'time', 402, 'The data types date and time are incompatible in the divide operator.'),
  ('/', 'date', 'timestamp', 402, 'The data types date and datetime are incompatible in the divide operator.'),
  ('/', 'date', 'timestamptz', 402, 'The data types date and datetime2 are incompatible in the divide operator.'),
  ('/', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('/', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('/', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('/', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('/', 'time', 'date', 402, 'The data types time and date are incompatible in the divide operator.'),
  ('/', 'time', 'time', 8117, 'Operand data type time is invalid for divide operator.'),
  ('/', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the divide operator.'),
  ('/', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the divide operator.'),
  ('/', 'timestamp', 'date', 402, 'The data types datetime and date are incompatible in the divide operator.'),
  ('/', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the divide operator.'),
  ('/', 'timestamptz', 'date', 402, 'The data types datetime2 and date are incompatible in the divide operator.'),
  ('/', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the divide operator.'),
  ('%', 'boolean', 'date', 206, 'Operand type clash: date is incompatible with bit'),
  ('%', 'boolean', 'time', 206, 'Operand type clash: time is incompatible with bit'),
  ('%', 'integer', 'date', 206, 'Operand type clash: date is incompatible with int'),
  ('%', 'integer', 'time', 206, 'Operand type clash: time is incompatible with int'),
  ('%', 'numeric', 'date', 206, 'Operand type clash: date is incompatible with numeric'),
  ('%', 'numeric', 'time', 206, 'Operand type clash: time is incompatible with numeric'),
  ('%', 'double precision', 'date', 206, 'Operand type clash: date is incompatible with float'),
  ('%', 'double precision', 'time', 206, 'Operand type clash: time is incompatible with float'),
  ('%', 'date', 'boolean', 206, 'Operand type clash: date is incompatible with bit'),
  ('%', 'date', 'integer', 206, 'Operand type clash: date is incompatible with int'),
  ('%', 'date', 'numeric', 206, 'Operand type clash: date is incompatible with numeric'),
  ('%', 'date', 'double precision', 206, 'Operand type clash: date is incompatible with float'),
  ('%', 'date', 'date', 8117, 'Operand data type date is invalid for modulo operator.'),
  ('%', 'date', 'time', 402, 'The data types date and time are incompatible in the modulo operator.'),
  ('%', 'date', 'timestamp', 402, 'The data types date and datetime are incompatible in the modulo operator.'),
  ('%', 'date', 'timestamptz', 402, 'The data types date and datetime2 are incompatible in the modulo operator.'),
  ('%', 'time', 'boolean', 206, 'Operand type clash: time is incompatible with bit'),
  ('%', 'time', 'integer', 206, 'Operand type clash: time is incompatible with int'),
  ('%', 'time', 'numeric', 206, 'Operand type clash: time is incompatible with numeric'),
  ('%', 'time', 'double precision', 206, 'Operand type clash: time is incompatible with float'),
  ('%', 'time', 'date', 402, 'The data types time and date are incompatible in the modulo operator.'),
  ('%', 'time', 'time', 8117, 'Operand data type time is invalid for modulo operator.'),
  ('%', 'time', 'timestamp', 402, 'The data types time and datetime are incompatible in the modulo operator.'),
  ('%', 'time', 'timestamptz', 402, 'The data types time and datetime2 are incompatible in the modulo operator.'),
  ('%', 'timestamp', 'date', 402, 'The data types datetime and date are incompatible in the modulo operator.'),
  ('%', 'timestamp', 'time', 402, 'The data types datetime and time are incompatible in the modulo operator.'),
  ('%', 'timestamptz', 'date', 402, 'The data types datetime2 and date are incompatible in the modulo operator.'),
  ('%', 'timestamptz', 'time', 402, 'The data types datetime2 and time are incompatible in the modulo operator.');
end;

comment on function tsql.refused_operators() is
'Operators that SQL Server has none of, by the types of both sides as PostgreSQL has them; their error and its text.';
