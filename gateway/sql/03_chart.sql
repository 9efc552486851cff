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
