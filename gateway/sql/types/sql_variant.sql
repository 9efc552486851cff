-- sql_variant: a value together with its type (SQL Server, "sql_variant (Transact-SQL)").

do $$
begin
  if to_regtype('tsql.sql_variant') is null then
    create type tsql.sql_variant as (base text, value text, uncompared json);
  end if;
end
$$;
comment on type tsql.sql_variant is
  'The base type as it is declared (varchar(20), decimal(10,2), datetime2(7)) and the value as a text that is read back '
  'exactly. T-SQL compares by families of types: `uncompared`, always {}, keeps PostgreSQL from comparing field by '
  'field where it has no operator class that says otherwise.';

create or replace function tsql.variant(base text, value text) returns tsql.sql_variant
language sql immutable parallel safe
return case when value is not null then row(base, value, '{}')::tsql.sql_variant end;
comment on function tsql.variant(text, text) is 'A null has no type.';

-- the form in which the gateway sends one
create or replace function tsql.sent_sql_variant(sent text) returns tsql.sql_variant
language sql immutable strict parallel safe
return tsql.variant(split_part(sent, ':', 1), substr(sent, strpos(sent, ':') + 1));
comment on function tsql.sent_sql_variant(text) is 'The base type, a colon, the value.';
do $$
begin
  if not exists (
    select from pg_cast where castsource = 'text'::regtype and casttarget = 'tsql.sql_variant'::regtype
  ) then
    create cast (text as tsql.sql_variant) with function tsql.sent_sql_variant(text);
  end if;
end
$$;

create or replace function tsql.variant_base(value tsql.sql_variant) returns text
language sql immutable parallel safe return split_part((value).base, '(', 1);
comment on function tsql.variant_base(tsql.sql_variant) is 'The name of the base type, without length or digits.';

create or replace function tsql.variant_digits(value tsql.sql_variant) returns integer
language sql immutable parallel safe return substring((value).base from '(\d+)\)$')::integer;
comment on function tsql.variant_digits(tsql.sql_variant) is
  'The last number in the parentheses of the base type: digits behind the point or the second, or a length.';

create or replace function tsql.variant_offset(value text) returns tsql.datetimeoffset
language sql immutable strict parallel safe
return tsql.at_offset(pg_catalog.left(value, -7)::timestamp, tsql.offset_minutes(pg_catalog.right(value, 6)));
comment on function tsql.variant_offset(text) is 'The stored form of a datetimeoffset: local time, a blank, +hh:mm.';

-- values whose T-SQL type is not determined by PostgreSQL's: the base type is an argument
call tsql.make_each(array[['boolean', 'value::integer::text'], ['smallint', 'value::text'], ['integer', 'value::text'],
  ['bigint', 'value::text'], ['numeric', 'value::text'], ['real', 'value::text'], ['double precision', 'value::text'],
  ['text', 'value'], ['uuid', 'value::text'], ['bytea', 'encode(value, ''hex'')'], ['date', 'to_char(value, ''YYYY-MM-DD'')'],
  ['time', 'value::text'], ['timestamp', 'to_char(value, ''YYYY-MM-DD HH24:MI:SS.US'')'],
  ['tsql.datetimeoffset', 'tsql.datetimeoffset_text(value, 121, 7)']
], $$create or replace function tsql.variant_of(base text, value %s) returns tsql.sql_variant
language sql immutable parallel safe return tsql.variant(base, %s)$$);

-- values of types that only PostgreSQL knows, if these determine T-SQL's
call tsql.make_each('{{boolean,bit},{tsql.tinyint,tinyint},{smallint,smallint},{integer,int},{bigint,bigint},{real,real},
  {double precision,float},{tsql.money,money},{tsql.smallmoney,smallmoney},{tsql.datetime,datetime},
  {tsql.smalldatetime,smalldatetime},{date,date},{uuid,uniqueidentifier},{tsql.datetimeoffset,datetimeoffset(7)}}', $$
create or replace function tsql.to_sql_variant(value %s) returns tsql.sql_variant
language sql immutable parallel safe return tsql.variant_of(%L, value)$$);
call tsql.make_each(array[
  ['text', 'varchar(n) or nvarchar(n)'], ['character', 'char(n) or nchar(n)'], ['numeric', 'decimal(p, s)'],
  ['bytea', 'binary(n) or varbinary(n)'], ['time', 'time(n)'], ['timestamp', 'datetime or datetime2(n)'],
  ['timestamptz', 'datetime or datetime2(n)']
], $$create or replace function tsql.to_sql_variant(value %s) returns tsql.sql_variant
language plpgsql immutable parallel safe
as 'begin if value is null then return null; end if; raise exception using errcode = ''0A000'', message =
  ''The type of a value that becomes a sql_variant is not known here: cast it to %s first, and then to sql_variant.''; end'$$);
create or replace function tsql.to_sql_variant(value tsql.sql_variant) returns tsql.sql_variant
language sql immutable parallel safe return value;

create or replace function tsql.no_conversion(source text, target text) returns void
language plpgsql immutable parallel safe
as $$
begin
  perform tsql.fail(529, format('Explicit conversion from data type %s to %s is not allowed.', source, target));
end
$$;

create or replace function tsql.styled_bytes(value bytea, length integer, style integer) returns text
language plpgsql immutable parallel safe
as $$
begin
  if style <> 0 then
    raise exception using errcode = '0A000', message = format('Style %s of a sql_variant that holds bytes is not '
      'supported: cast it to varbinary(n) first.', style);
  end if;
  return tsql.to_varchar(value, length);
end
$$;

-- conversions to other types: those of the base type
do $$
declare
  target record;
  base record;
  call text;
  branches text;
begin
  for target in select * from (values
    ('to_bit', 'boolean', '', 'bit', 'bit'), ('to_tinyint', 'smallint', '', 'int', 'tinyint'),
    ('to_smallint', 'smallint', '', 'int', 'smallint'), ('to_int', 'integer', '', 'int', 'int'),
    ('to_bigint', 'bigint', '', 'int', 'bigint'), ('to_numeric', 'numeric', '', 'numeric', 'decimal'),
    ('to_money', 'tsql.money', '', 'numeric', 'money'), ('to_smallmoney', 'tsql.smallmoney', '', 'numeric', 'smallmoney'),
    ('to_real', 'real', '', 'float', 'real'), ('to_float', 'double precision', '', 'float', 'float'),
    ('to_varchar', 'text', ', length integer', 'varchar', 'varchar'),
    ('to_varchar', 'text', ', length integer, style integer', 'varchar', 'varchar'),
    ('text_of', 'text', '', 'varchar', 'varchar'),
    ('to_binary', 'bytea', ', length integer', 'varbinary', 'binary'),
    ('to_varbinary', 'bytea', ', length integer', 'varbinary', 'varbinary'),
    ('to_guid', 'uuid', '', 'uniqueidentifier', 'uniqueidentifier'), ('to_date', 'date', '', 'date', 'date'),
    ('to_time', 'time', '', 'time', 'time'), ('to_datetime', 'timestamp', '', 'datetime', 'datetime'),
    ('to_smalldatetime', 'timestamp', '', 'datetime', 'smalldatetime'),
    ('to_datetime2', 'timestamp', '', 'datetime2', 'datetime2'),
    ('to_datetimeoffset', 'tsql.datetimeoffset', ', digits integer', 'datetime2', 'datetimeoffset')
  ) as targets (function_, gives, more, class, name)
  loop
    branches := '';
    for base in select * from (values
      ('bit', 'bit', '(value).value::integer::boolean'), ('tinyint', 'int', '(value).value::smallint'),
      ('smallint', 'int', '(value).value::smallint'), ('int', 'int', '(value).value::integer'),
      ('bigint', 'int', '(value).value::bigint'), ('decimal', 'numeric', '(value).value::numeric'),
      ('numeric', 'numeric', '(value).value::numeric'), ('money', 'numeric', '(value).value::numeric::tsql.money'),
      ('smallmoney', 'numeric', '(value).value::numeric::tsql.smallmoney'), ('real', 'float', '(value).value::real'),
      ('float', 'float', '(value).value::double precision'), ('char', 'varchar', '(value).value'),
      ('nchar', 'varchar', '(value).value'), ('varchar', 'varchar', '(value).value'),
      ('nvarchar', 'varchar', '(value).value'), ('binary', 'varbinary', 'decode((value).value, ''hex'')'),
      ('varbinary', 'varbinary', 'decode((value).value, ''hex'')'),
      ('uniqueidentifier', 'uniqueidentifier', '(value).value::uuid'),
      ('date', 'date', '(value).value::date'), ('time', 'time', '(value).value::time'),
      ('datetime', 'datetime', '(value).value::timestamp'),
      ('smalldatetime', 'datetime', '(value).value::timestamp'),
      ('datetime2', 'datetime2', '(value).value::timestamp'),
      ('datetimeoffset', 'datetime2', 'tsql.variant_offset((value).value)')
    ) as bases (name, class, reader)
    loop
      call := case
        when tsql.assignment_error(base.class, target.class, false) = 206 then null
        -- types displayed with their declared digits
        when target.gives = 'text' and base.name in ('datetime2', 'datetimeoffset', 'time') then
          case target.more
            when '' then format('tsql.%s_text(%s, 121, tsql.variant_digits(value))', base.name, base.reader)
            when ', length integer' then
              format('pg_catalog.left(tsql.%s_text(%s, 121, tsql.variant_digits(value)), length)', base.name, base.reader)
            else format('pg_catalog.left(tsql.%s_text(%s, style, tsql.variant_digits(value)), coalesce(length, 8000))',
              base.name, base.reader)
          end
        when target.function_ = 'text_of' and base.class = 'varchar' then base.reader
        when target.more like '%style%' and base.class = 'varbinary' then
          format('tsql.styled_bytes(%s, length, style)', base.reader)
        else format('tsql.%I(%s%s)', target.function_, base.reader,
          regexp_replace(target.more, ' integer', '', 'g'))
      end;
      branches := branches || format(' when %L then ', base.name)
        || case when call is null then format('perform tsql.no_conversion(%L, %L);', base.name, target.name)
          else format('return %s;', call) end;
    end loop;
    execute format('create or replace function tsql.%I(value tsql.sql_variant%s) returns %s'
      ' language plpgsql immutable parallel safe as %L', target.function_, target.more, target.gives,
      'begin if value is null then return null; end if; case tsql.variant_base(value)' || branches
      || ' end case; return null; end');
  end loop;
end
$$;

-- the form of a value compared with a sql_variant: only the family of its type matters
create or replace function tsql.comparable(value tsql.sql_variant) returns tsql.sql_variant
language sql immutable parallel safe return value;
call tsql.make_each('{{boolean,bit},{smallint,smallint},{integer,int},{bigint,bigint},{numeric,decimal},{real,real},
  {double precision,float},{text,nvarchar},{bytea,varbinary},{uuid,uniqueidentifier},{date,date},{time,time(7)},
  {timestamp,datetime2(7)},{tsql.datetimeoffset,datetimeoffset(7)}}', $$
create or replace function tsql.comparable(value %s) returns tsql.sql_variant
language sql immutable parallel safe return tsql.variant_of(%L, value)$$);

create or replace function tsql.variant_family(base text) returns integer
language sql immutable strict parallel safe
return case
  when base = 'uniqueidentifier' then 1
  when base in ('binary', 'varbinary') then 2
  when base in ('char', 'varchar', 'nchar', 'nvarchar') then 3
  when base in ('bit', 'tinyint', 'smallint', 'int', 'bigint', 'smallmoney', 'money', 'decimal', 'numeric') then 4
  when base in ('real', 'float') then 5
  when base in ('time', 'date', 'smalldatetime', 'datetime', 'datetimeoffset', 'datetime2') then 6
end;
comment on function tsql.variant_family(text) is
  'The family of a base type, in the order of the hierarchy of "sql_variant (Transact-SQL)": a value of a higher one is '
  'the greater.';

create or replace function tsql.compare_variants(l tsql.sql_variant, r tsql.sql_variant) returns integer
language plpgsql immutable parallel safe
as $$
declare
  bases constant text[] := array[tsql.variant_base(l), tsql.variant_base(r)];
  family constant integer := tsql.variant_family(bases[1]);
  ours text := (l).value;
  theirs text := (r).value;
  moments timestamp[];
begin
  if l is null or r is null then
    return null;
  end if;
  if family <> tsql.variant_family(bases[2]) then
    return sign(family - tsql.variant_family(bases[2]));
  end if;
  if family = 4 then
    return sign(ours::numeric - theirs::numeric);
  elsif family = 5 then
    -- a real compared with a float is converted to float
    return case
      when bases[1] = bases[2] and bases[1] = 'real' then btfloat4cmp(ours::real, theirs::real)
      else btfloat8cmp(case bases[1] when 'real' then ours::real::float8 else ours::float8 end,
        case bases[2] when 'real' then theirs::real::float8 else theirs::float8 end)
    end;
  elsif family = 6 then
    if bases[1] = bases[2] and bases[1] = 'time' then
      return time_cmp(ours::time, theirs::time);
    elsif bases in (array['time', 'date'], array['date', 'time'], array['time', 'datetimeoffset'],
      array['datetimeoffset', 'time'], array['datetime2', 'datetimeoffset'], array['datetimeoffset', 'datetime2']) then
      -- instants and times without a zone have no common order
      raise exception using errcode = '0A000',
        message = format('A sql_variant of %s is not compared with one of %s here: convert both to one type.',
          bases[1], bases[2]);
    elsif 'datetimeoffset' = any (bases) then
      return tsql.compare_offsets(
        case bases[1] when 'datetimeoffset' then tsql.variant_offset(ours) else tsql.at_offset(ours::timestamp, 0) end,
        case bases[2] when 'datetimeoffset' then tsql.variant_offset(theirs) else tsql.at_offset(theirs::timestamp, 0) end);
    end if;
    for i in 1 .. 2 loop
      moments[i] := case bases[i]
        when 'time' then timestamp '1900-01-01' + (case i when 1 then ours else theirs end)::time
        else (case i when 1 then ours else theirs end)::timestamp
      end;
    end loop;
    return timestamp_cmp(moments[1], moments[2]);
  elsif family = 3 then
    -- trailing blanks are ignored
    return bttextcmp(pg_catalog.rtrim(ours, ' '), pg_catalog.rtrim(theirs, ' '));
  elsif family = 2 then
    return bttextcmp(regexp_replace(ours, '(00)+$', '') collate "C", regexp_replace(theirs, '(00)+$', '') collate "C");
  end if;
  return bttextcmp(tsql.guid_order(ours) collate "C", tsql.guid_order(theirs) collate "C");
end
$$;
comment on function tsql.compare_variants(tsql.sql_variant, tsql.sql_variant) is
  'Below 0, 0 or above 0: by the families of the base types, and within one by value ("sql_variant (Transact-SQL)").';

create or replace function tsql.variant_size(value tsql.sql_variant) returns integer
language sql immutable parallel safe
return (
  with of (base, digits) as (select tsql.variant_base(value), tsql.variant_digits(value))
  select case
    when base in ('bit', 'tinyint') then 1 when base = 'smallint' then 2
    when base in ('int', 'real', 'smallmoney', 'smalldatetime') then 4
    when base in ('bigint', 'float', 'money', 'datetime') then 8
    when base = 'uniqueidentifier' then 16 when base = 'date' then 3
    when base in ('char', 'varchar') then octet_length((value).value)
    when base in ('nchar', 'nvarchar') then 2 * tsql.units((value).value)
    when base in ('binary', 'varbinary') then octet_length((value).value) / 2
    when base in ('decimal', 'numeric') then
      case width_bucket(abs((value).value::numeric * 10::numeric ^ digits), array[2::numeric ^ 32, 2::numeric ^ 64, 2::numeric ^ 96])
        when 0 then 5 when 1 then 9 when 2 then 13 else 17 end
    else case when digits <= 2 then 3 when digits <= 4 then 4 else 5 end
      + case base when 'time' then 0 when 'datetime2' then 3 else 5 end
  end
  from of
);
comment on function tsql.variant_size(tsql.sql_variant) is 'The bytes in which SQL Server stores the value.';

create or replace function tsql.sql_variant_property(value tsql.sql_variant, property text) returns tsql.sql_variant
language plpgsql immutable parallel safe
as $$
declare
  base text := tsql.variant_base(value);
  asked text := pg_catalog.lower(property);
  numbers integer[] := array(select number[1]::integer from regexp_matches((value).base, '\d+', 'g') as number);
  last integer := tsql.variant_digits(value);
begin
  if value is null then
    return null;
  elsif asked = 'basetype' then
    return tsql.variant('nvarchar(128)', base);
  elsif asked = 'precision' then
    return tsql.variant('int', (case base
      when 'date' then 10 when 'datetime' then 23 when 'smalldatetime' then 16
      when 'datetime2' then case last when 0 then 19 else last + 20 end
      when 'datetimeoffset' then case last when 0 then 26 else last + 27 end
      when 'time' then case last when 0 then 8 else last + 9 end
      when 'float' then 53 when 'real' then 24 when 'decimal' then numbers[1] when 'numeric' then numbers[1]
      when 'money' then 19 when 'smallmoney' then 10 when 'bigint' then 19 when 'int' then 10 when 'smallint' then 5
      when 'tinyint' then 3 when 'bit' then 1 else 0 end)::text);
  elsif asked = 'scale' then
    return tsql.variant('int', (case
      when base in ('decimal', 'numeric', 'datetime2', 'datetimeoffset', 'time') then last
      when base in ('money', 'smallmoney') then 4 when base = 'datetime' then 3 else 0 end)::text);
  elsif asked = 'maxlength' then
    return tsql.variant('int', (case
      when base in ('nchar', 'nvarchar') then 2 * last
      when base in ('char', 'varchar', 'binary', 'varbinary') then last
      else tsql.variant_size(value) end)::text);
  elsif asked = 'totalbytes' then
    -- plus two bytes for the base type, and those of its properties
    return tsql.variant('int', (tsql.variant_size(value) + 2 + case
      when base in ('decimal', 'numeric', 'binary', 'varbinary') then 2
      when base in ('time', 'datetime2', 'datetimeoffset') then 1
      when base in ('char', 'varchar', 'nchar', 'nvarchar') then 6 else 0 end)::text);
  elsif asked = 'collation' and base in ('char', 'varchar', 'nchar', 'nvarchar') then
    return tsql.variant('nvarchar(128)', 'Latin1_General_100_BIN2_UTF8');
  end if;
  return null;
end
$$;
comment on function tsql.sql_variant_property(tsql.sql_variant, text) is
  'BaseType, Precision, Scale, TotalBytes, Collation or MaxLength ("SQL_VARIANT_PROPERTY"); null for another property.';

create or replace function tsql.server_property(property text) returns tsql.sql_variant
language sql stable
as $$
  select tsql.variant(case
    when pg_catalog.lower(pg_catalog.rtrim(property)) = any ('{engineedition,isclustered,isfulltextinstalled,ishadrenabled,'
      'isintegratedsecurityonly,issingleuser,processid}') then 'int' else 'nvarchar(128)' end, sys.serverproperty(property))
$$;
comment on function tsql.server_property(text) is 'SERVERPROPERTY as SQL Server has it, with the base type of the property.';

-- with a style, which only applies to texts
create or replace function tsql.read_datetime(value tsql.sql_variant, style integer) returns timestamp
language sql stable strict parallel safe return tsql.read_datetime(tsql.text_of(value), style);
create or replace function tsql.read_datetime(value tsql.sql_variant, style integer, type_ text) returns timestamp
language sql stable strict parallel safe return tsql.read_datetime(tsql.text_of(value), style, type_);
create or replace function tsql.read_datetimeoffset(value tsql.sql_variant, style integer) returns tsql.datetimeoffset
language sql stable strict parallel safe return tsql.read_datetimeoffset(tsql.text_of(value), style);
