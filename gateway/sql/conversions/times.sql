-- Conversions to times (as in conversions/numbers.sql).

call tsql.make_each(array[['to_datetime(value timestamp)', 'timestamp', 'tsql.in_range(value)'],
  ['to_datetime2(value timestamp)', 'timestamp', 'value'],
  ['to_smalldatetime(value timestamp)', 'timestamp',
    'date_trunc(''minute'', tsql.in_small_range(value) + interval ''30 seconds 1 millisecond'')'],
  ['to_date(value timestamp)', 'date', 'value::date'], ['to_time(value timestamp)', 'time', 'value::time'],
  ['to_date(value date)', 'date', 'value'], ['to_time(value time)', 'time', 'value']
], 'create or replace function tsql.%s returns %s language sql immutable strict parallel safe return %s');
call tsql.make_each(array[['datetime', 'timestamp', 'date'], ['datetime', 'timestamp', 'time'], ['datetime2', 'timestamp', 'date'],
  ['datetime2', 'timestamp', 'time'], ['datetime2', 'timestamp', 'text'], ['smalldatetime', 'timestamp', 'date'],
  ['smalldatetime', 'timestamp', 'time'], ['date', 'date', 'text'], ['time', 'time', 'text']
], $$create or replace function tsql.to_%1$s(value %3$s) returns %2$s
language sql immutable strict parallel safe return tsql.to_%1$s(tsql.moment(value))$$);
call tsql.make_each('{{datetime,timestamp},{datetime2,timestamp},{smalldatetime,timestamp},{date,date},{time,time}}', $$
create or replace function tsql.to_%1$s(value timestamptz) returns %2$s
language sql stable strict parallel safe return tsql.to_%1$s(tsql.moment(value))$$);
call tsql.make_each('{datetime,smalldatetime}', $$
create or replace function tsql.to_%1$s(value text) returns timestamp
language sql immutable strict parallel safe return tsql.to_%1$s(tsql.read_datetime(value, 0, %1$L));
call tsql.make_each('{boolean,integer,numeric,double precision}',
  'create or replace function tsql.to_%1$s(value %%s) returns timestamp'
  ' language sql immutable strict parallel safe return tsql.to_%1$s(tsql.moment(value))')$$);
-- "CAST and CONVERT": explicit conversions that do not exist
call tsql.make_each('{{date,date},{time,time},{datetime2,timestamp}}', $$
call tsql.make_each('{{boolean,bit},{integer,int},{numeric,numeric},{double precision,float}}',
  'create or replace function tsql.to_%1$s(value %%s) returns %2$s language sql immutable parallel safe return'
  ' tsql.refused(529, ''Explicit conversion from data type %%s to %1$s is not allowed.'', null::%2$s)')$$);
call tsql.make_each('{{date,time},{time,date}}', $$
create or replace function tsql.to_%1$s(value %2$s) returns %1$s language sql immutable parallel safe
return tsql.refused(529, 'Explicit conversion from data type %2$s to %1$s is not allowed.', null::%1$s)$$);

-- with a style, which only applies to texts: a column may be of any type
call tsql.make_each('{{timestamp,immutable},{timestamptz,stable},{date,immutable},{time,immutable}}', $$
create or replace function tsql.read_datetime(value %1$s, style integer) returns timestamp
language sql %2$s strict parallel safe return tsql.moment(value);
create or replace function tsql.read_datetime(value %1$s, style integer, type_ text) returns timestamp
language sql %2$s strict parallel safe return tsql.moment(value)$$);
-- a number is the days of a datetime or smalldatetime, with its own errors
call tsql.make_each(array[['boolean', 'tsql.moment(value::integer)'], ['smallint', 'tsql.moment(value::integer)'],
  ['integer', 'tsql.moment(value)'], ['bigint', 'tsql.moment(value::numeric)'], ['numeric', 'tsql.moment(value)'],
  ['double precision', 'tsql.moment(value)'], ['real', 'tsql.moment(value::double precision)'],
  ['character', 'tsql.read_datetime(tsql.text_of(value), style, type_)'],
  ['uuid', 'tsql.read_datetime(tsql.text_of(value), style, type_)'],
  ['bytea', 'tsql.read_datetime(tsql.text_of(value), style, type_)'],
  ['xml', 'tsql.read_datetime(tsql.text_of(value), style, type_)']
], $$create or replace function tsql.read_datetime(value %1$s, style integer) returns timestamp
language sql immutable strict parallel safe return tsql.read_datetime(tsql.text_of(value), style);
create or replace function tsql.read_datetime(value %1$s, style integer, type_ text) returns timestamp
language sql immutable strict parallel safe return %2$s$$);

-- a sum has the type of the column
call tsql.make_each('{datetime,smalldatetime}', $$
create or replace function tsql.dateadd(part text, number integer, moment tsql.%1$s) returns tsql.%1$s
language sql immutable strict parallel safe
return tsql.to_%1$s(tsql.added(tsql.dateadd(part, number, moment::timestamp), %1$L))$$);
