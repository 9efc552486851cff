-- T-SQL's names of PostgreSQL's types, as announced by the gateway (gateway/src/convert/announcing.rs).

-- A name, as SQL Server declares it: announced as nvarchar(128). A result column of a function keeps its length only
-- through a domain.
create domain sys.sysname as character varying(128);
-- names are compared without their case, as they are in statements
create function sys.is_same_name(l text, r text) returns boolean
language sql immutable parallel safe
return lower(rtrim(l, ' ')) = lower(rtrim(r, ' '));
do $$
declare
  sides record;
begin
  for sides in
    select l.type as l, r.type as r
    from unnest('{sys.sysname,text,varchar,bpchar}'::regtype[]) as l (type)
    cross join unnest('{sys.sysname,text,varchar,bpchar}'::regtype[]) as r (type)
    where 'sys.sysname'::regtype in (l.type, r.type)
  loop
    execute format('create function sys.eq(l %s, r %s) returns boolean language sql immutable parallel safe'
      ' return sys.is_same_name(l::text, r::text)', sides.l, sides.r);
    execute format('create function sys.ne(l %s, r %s) returns boolean language sql immutable parallel safe'
      ' return not sys.is_same_name(l::text, r::text)', sides.l, sides.r);
    execute format('create operator tsql.= (function = sys.eq, leftarg = %s, rightarg = %s)', sides.l, sides.r);
    execute format('create operator tsql.<> (function = sys.ne, leftarg = %s, rightarg = %s)', sides.l, sides.r);
  end loop;
end
$$;
-- a remark of ODBC's catalogue functions
create domain sys.remarks as character varying(254);
-- a line of a report
create domain sys.line as character varying(255);
-- a list of columns
create domain sys.list as character varying(2078);

-- `T-SQL "ColB" varchar(20)`: as create table of T-SQL writes it into the comments of columns, tables and constraints (schema
-- tsql, declare_columns and declare_names).
create function sys.declaration(comment text) returns table (shown text, type text, user_type text)
language sql immutable
as $$
  -- expressions alone, which become part of a query: for each of thousands of columns a function would be called
  select
    replace(substring(comment from '^T-SQL "((?:[^"]|"")+)" ?.*$'), '""', '"'),
    nullif(substring(comment from '^T-SQL "(?:[^"]|"")+" ?((?:(?! ?as ")[^\n])*)'), ''),
    replace(substring(comment from '^T-SQL "(?:[^"]|"")+"[^"\n]* as "((?:[^"]|"")+)"'), '""', '"')
$$;

-- A comment without the extended properties in its last line, and these: see extended_properties.sql. `like` is much faster than
-- the expression, where a text has none.
create function sys.comment_base(comment text) returns text
language sql immutable
as $$
  select case when comment like E'%\n-- extended properties: {%'
    then regexp_replace(comment, '\n-- extended properties: \{.*\}$', '') else comment end
$$;

create function sys.comment_properties(comment text) returns jsonb
language sql immutable
as $$
  select case when comment like E'%\n-- extended properties: {%'
    then substring(comment from '\n-- extended properties: (\{.*\})$')::jsonb else '{}' end
$$;

create function sys.base_of(domain oid, out type oid, out typmod integer)
language plpgsql stable
as $$
declare
  found record;
begin
  type := domain;
  typmod := -1;
  loop
    select typtype, typbasetype, typtypmod into found from pg_catalog.pg_type where oid = type;
    exit when found.typtype is distinct from 'd';
    typmod := greatest(typmod, found.typtypmod);
    type := found.typbasetype;
  end loop;
end
$$;
comment on function sys.base_of(oid) is 'The base type of a domain; any other type itself.';

-- SQL Server's system types. Numbers, lengths, precisions: sys.types of SQL Server's documentation; usertype and
-- storage type: systypes of ASE's (Reference Manual: Tables), where SQL Server has none of its own or 0.
-- ASE has no datetimeoffset, sql_variant or xml: their usertypes are numbers that it does not use.
-- odbc, odbc_precision, odbc_length, odbc_scale, radix, sub: ODBC's Appendix D (data types, column size, transfer
-- octet length, decimal digits); ss_type and ss_nullable: SS_DATA_TYPE of sp_columns.
create view sys.every_listed_system_type as
select
  name::sys.sysname as name,
  system_type_id, user_type_id, usertype, storage, bytes, precision, scale, odbc, odbc_precision, odbc_length,
  odbc_scale, radix, sub, ss_type, ss_nullable
from (values
  ('image', 34, 34, 20, 34, 16, 0, 0, -4, 2147483647, 2147483647, null, null, null, 37, 37),
  ('text', 35, 35, 19, 35, 16, 0, 0, -1, 2147483647, 2147483647, null, null, null, 39, 39),
  ('uniqueidentifier', 36, 36, 0, 37, 16, 0, 0, -11, 36, 16, null, null, null, 37, 37),
  ('date', 40, 40, 37, 49, 3, 10, 0, 91, 10, 6, 0, null, 1, 0, 0),
  ('time', 41, 41, 51, 190, 5, 15, 6, 92, 15, 12, 6, null, 2, 0, 0),
  ('datetime2', 42, 42, 50, 189, 8, 26, 6, 93, 26, 16, 6, null, 3, 0, 0),
  ('datetimeoffset', 43, 43, 52, 0, 10, 33, 6, -155, 33, 20, 6, null, null, 0, 0),
  ('tinyint', 48, 48, 5, 48, 1, 3, 0, -6, 3, 1, 0, 10, null, 48, 38),
  ('smallint', 52, 52, 6, 52, 2, 5, 0, 5, 5, 2, 0, 10, null, 52, 38),
  ('int', 56, 56, 7, 56, 4, 10, 0, 4, 10, 4, 0, 10, null, 56, 38),
  ('smalldatetime', 58, 58, 22, 58, 4, 16, 0, 93, 16, 16, 0, null, 3, 58, 111),
  ('real', 59, 59, 23, 59, 4, 24, 0, 7, 24, 4, null, 2, null, 59, 109),
  ('money', 60, 60, 11, 60, 8, 19, 4, 3, 19, 21, 4, 10, null, 60, 110),
  ('datetime', 61, 61, 12, 61, 8, 23, 3, 93, 23, 16, 3, null, 3, 61, 111),
  ('float', 62, 62, 8, 62, 8, 53, 0, 6, 53, 8, null, 2, null, 62, 109),
  ('sql_variant', 98, 98, 53, 0, 8016, 0, 0, -150, 8000, 8000, null, null, null, 39, 39),
  ('ntext', 99, 99, 36, 174, 16, 0, 0, -10, 1073741823, 2147483646, null, null, null, 39, 39),
  ('bit', 104, 104, 16, 50, 1, 1, 0, -7, 1, 1, null, null, null, 50, 50),
  ('decimal', 106, 106, 26, 55, 17, 38, 38, 3, 38, 40, 38, 10, null, 63, 108),
  ('numeric', 108, 108, 10, 63, 17, 38, 38, 2, 38, 40, 38, 10, null, 63, 108),
  ('smallmoney', 122, 122, 21, 122, 4, 10, 4, 3, 10, 12, 4, 10, null, 122, 110),
  ('bigint', 127, 127, 43, 191, 8, 19, 0, -5, 19, 8, 0, 10, null, 63, 108),
  ('varbinary', 165, 165, 4, 37, 8000, 0, 0, -3, 8000, 8000, null, null, null, 37, 37),
  ('varchar', 167, 167, 2, 39, 8000, 0, 0, 12, 8000, 8000, null, null, null, 39, 39),
  ('binary', 173, 173, 3, 45, 8000, 0, 0, -2, 8000, 8000, null, null, null, 45, 37),
  ('char', 175, 175, 1, 47, 8000, 0, 0, 1, 8000, 8000, null, null, null, 47, 39),
  ('timestamp', 189, 189, 80, 37, 8, 0, 0, -2, 8, 8, null, null, null, 45, 37),
  ('xml', 241, 241, 54, 0, -1, 0, 0, -152, 0, 2147483646, null, null, null, 0, 0),
  ('nvarchar', 231, 231, 25, 155, 8000, 0, 0, -9, 4000, 8000, null, null, null, 39, 39),
  ('sysname', 231, 256, 18, 155, 256, 0, 0, -9, 128, 256, null, null, null, 39, 39),
  ('nchar', 239, 239, 24, 135, 8000, 0, 0, -8, 4000, 8000, null, null, null, 47, 39)
) as listed (
  name, system_type_id, user_type_id, usertype, storage, bytes, precision, scale,
  odbc, odbc_precision, odbc_length, odbc_scale, radix, sub, ss_type, ss_nullable
);

-- Kept by a function, whose rows PostgreSQL reads much faster for each column than a list of values.
create function sys.system_types() returns setof sys.every_listed_system_type
language plpgsql immutable rows 31
as $$ begin return query select * from sys.every_listed_system_type; end $$;

create view sys.every_system_type as
select * from sys.system_types();

-- The T-SQL type of each PostgreSQL type, for 7.x clients and for those of TDS 5.0 (ASE's sp_datatype_info).
create view sys.every_listed_announced_type as
select
  type::oid as type,
  name,
  ase_name::sys.sysname as ase_name,
  ase_odbc, ase_precision, ase_length, ase_scale, ase_radix, ase_usertype,
  -- n of nvarchar(n), where the type has it; -1: no limit
  characters
from (values
  ('pg_catalog.bool'::regtype, 'bit', 'tinyint', -6, 3, 1, 0, 10, 5, null::integer),
  ('pg_catalog.int2', 'smallint', 'smallint', 5, 5, 2, 0, 10, 6, null),
  ('pg_catalog.int4', 'int', 'int', 4, 10, 4, 0, 10, 7, null),
  ('pg_catalog.int8', 'bigint', 'bigint', -5, 19, 8, 0, 10, 43, null),
  ('pg_catalog.oid', 'bigint', 'bigint', -5, 19, 8, 0, 10, 43, null),
  ('pg_catalog.float4', 'real', 'real', 7, 7, 4, null, 10, 23, null),
  ('pg_catalog.float8', 'float', 'float', 6, 15, 8, null, 10, 8, null),
  ('pg_catalog.numeric', 'numeric', 'numeric', 2, 38, 33, 18, 10, 10, null),
  ('pg_catalog.varchar', 'nvarchar', 'varchar', 12, null, null, null, null, 2, -1),
  ('pg_catalog.bpchar', 'nchar', 'char', 1, null, null, null, null, 1, -1),
  ('pg_catalog.name', 'nvarchar', 'varchar', 12, 63, 63, null, null, 2, 63),
  ('pg_catalog."char"', 'nvarchar', 'varchar', 12, 1, 1, null, null, 2, 1),
  ('pg_catalog.text', 'nvarchar', 'text', -1, 2147483647, 2147483647, null, null, 19, -1),
  ('pg_catalog.xml', 'xml', 'text', -1, 2147483647, 2147483647, null, null, 19, null),
  ('pg_catalog.bytea', 'varbinary', 'image', -4, 2147483647, 2147483647, null, null, 20, -1),
  ('pg_catalog.date', 'date', 'date', 91, 10, 4, 0, null, 37, null),
  ('pg_catalog.time', 'time', 'bigtime', 92, 15, 8, 6, null, 51, null),
  ('pg_catalog.timestamp', 'datetime2', 'bigdatetime', 93, 26, 8, 6, null, 50, null),
  ('pg_catalog.timestamptz', 'datetime2', 'bigdatetime', 93, 26, 8, 6, null, 50, null),
  ('pg_catalog.uuid', 'uniqueidentifier', 'char', 1, 36, 36, null, null, 1, null),
  -- ASE has no such type: only its nulls are sent there
  (pg_catalog.to_regtype('tsql.sql_variant'), 'sql_variant', 'varchar', 12, 255, 255, null, null, 2, null)
) as listed (
  type, name, ase_name, ase_odbc, ase_precision, ase_length, ase_scale, ase_radix, ase_usertype, characters
);

create function sys.announced_types() returns setof sys.every_listed_announced_type
language plpgsql immutable rows 21
as $$ begin return query select * from sys.every_listed_announced_type; end $$;

create view sys.every_announced_type as
select * from sys.announced_types();

create function sys.described_type(type oid, typmod integer, declaration text default null) returns table (
  name sys.sysname,
  system_type_id integer,
  user_type_id integer,
  usertype integer,
  storage integer,
  -- n of nvarchar(n); -1: no limit; null: no characters
  characters integer,
  -- max_length of sys.columns: bytes, -1: no limit
  bytes integer,
  digits integer,
  scale integer,
  odbc integer,
  odbc_precision integer,
  odbc_length integer,
  odbc_scale integer,
  radix integer,
  sub integer,
  ss_type integer,
  ss_nullable integer,
  ase_name sys.sysname,
  ase_odbc integer,
  ase_precision integer,
  ase_length integer,
  ase_scale integer,
  ase_radix integer,
  ase_usertype integer
)
language sql stable
as $$
  select
    types.name, types.system_type_id, types.user_type_id, types.usertype, types.storage, measured.characters,
    case
      when types.name in ('decimal', 'numeric') then
        case when measured.precision <= 9 then 5 when measured.precision <= 19 then 9
          when measured.precision <= 28 then 13 else 17 end
      when measured.characters = -1 then -1
      when measured.characters is not null then measured.width * measured.characters
      when parsed.digits is not null then
        case when parsed.digits <= 2 then 3 when parsed.digits <= 4 then 4 else 5 end
        + case parsed.name when 'datetime2' then 3 when 'datetimeoffset' then 5 else 0 end
      else types.bytes
    end,
    coalesce(measured.precision, types.precision),
    coalesce(measured.scale, types.scale),
    types.odbc,
    case
      when types.name in ('decimal', 'numeric') or parsed.digits is not null then measured.precision
      when measured.characters = -1 then case measured.width when 1 then 2147483647 else 1073741823 end
      else coalesce(measured.characters, types.odbc_precision)
    end,
    case
      when types.name in ('decimal', 'numeric') then measured.precision + 2
      when measured.characters = -1 then case measured.width when 1 then 2147483647 else 2147483646 end
      else coalesce(measured.width * measured.characters, types.odbc_length)
    end,
    case when types.name in ('decimal', 'numeric', 'time', 'datetime2', 'datetimeoffset') then coalesce(measured.scale, types.odbc_scale)
      else types.odbc_scale end,
    types.radix, types.sub, types.ss_type, types.ss_nullable,
    case when parsed.is_ases then types.name
      when announced.ase_usertype in (1, 2) and measured.characters = -1 then 'text'
      else announced.ase_name end,
    case when parsed.is_ases then types.odbc
      when announced.ase_usertype in (1, 2) and measured.characters = -1 then -1
      else announced.ase_odbc end,
    case
      when types.name in ('decimal', 'numeric') then measured.precision
      when parsed.is_ases then coalesce(measured.characters, types.odbc_precision)
      when announced.ase_usertype in (1, 2) and measured.characters = -1 then 2147483647
      else coalesce(nullif(measured.characters, -1), announced.ase_precision)
    end,
    case
      when types.name in ('decimal', 'numeric') then measured.precision + 2
      when parsed.is_ases then coalesce(measured.characters, types.odbc_length)
      when announced.ase_usertype in (1, 2) and measured.characters = -1 then 2147483647
      else coalesce(nullif(measured.characters, -1), announced.ase_length)
    end,
    case when types.name in ('decimal', 'numeric') then measured.scale
      when parsed.is_ases then types.odbc_scale else announced.ase_scale end,
    case when parsed.is_ases then types.radix else announced.ase_radix end,
    case when parsed.is_ases then types.usertype
      when announced.ase_usertype in (1, 2) and measured.characters = -1 then 19
      else announced.ase_usertype end
  -- offset 0 in each: PostgreSQL takes one type after the other, and would otherwise join all types with all
  from (select * from pg_catalog.pg_type as types where types.oid = described_type.type offset 0) as declared
  left join lateral (
    select base.type, base.typmod
    from (select declared.oid where declared.typtype = 'd' offset 0) as domain
    cross join lateral sys.base_of(domain.oid) as base
  ) as behind on true
  cross join lateral (
    select
      case
        -- a collation without case is a type of its own
        when declared.typnamespace = 'tsql'::regnamespace and declared.typname = 'ci_varchar' then 'pg_catalog.varchar'::regtype
        when declared.typnamespace = 'tsql'::regnamespace and declared.typname = 'ci_char' then 'pg_catalog.bpchar'::regtype
        else coalesce(behind.type, declared.oid)
      end as type,
      coalesce(behind.typmod, described_type.typmod) as typmod
  ) as base
  cross join lateral (
    select listed.* from sys.every_announced_type as listed
    -- a type without a T-SQL type is sent as text
    where listed.type = case when base.type in (select known.type from sys.every_announced_type as known)
      then base.type else 'pg_catalog.text'::regtype end
    offset 0
  ) as announced
  cross join lateral (
    -- as it was declared: varchar(20), varchar(max), money, time(3), decimal(7,3)
    select parts.name, parts.length, parts.digits, parts.decimal, parts.argument = 'max' as is_max,
      parts.name not in ('time', 'datetime2', 'datetimeoffset', 'ntext') and parts.argument is distinct from 'max' as is_ases
    from (
      select
        split_part(written.declaration, '(', 1) as name,
        written.argument,
        case when written.declaration ~ '^n?(var)?(char|binary)' and written.argument ~ '^[0-9]+$' then written.argument::integer
          end as length,
        case when written.declaration ~ '^(time|datetime2|datetimeoffset)($|[(])' then coalesce(written.argument::integer, 7) end as digits,
        case when written.declaration ~ '^(decimal|numeric)[(]' then written.argument end as decimal
      from (select described_type.declaration, substring(described_type.declaration from '[(](.*)[)]') as argument offset 0) as written
      offset 0
    ) as parts
    offset 0
  ) as parsed
  cross join lateral (
    select listed.* from sys.every_system_type as listed where listed.name::text = coalesce(parsed.name, announced.name::text) offset 0
  ) as types
  cross join lateral (
    -- numeric's typmod is (precision << 16 | scale) + 4 with an 11-bit signed scale (numeric.c)
    select
      coalesce(split_part(parsed.decimal, ',', 1)::integer, ((base.typmod - 4) >> 16) & 65535) as precision,
      coalesce(split_part(parsed.decimal, ',', 2)::integer, (((base.typmod - 4) & 2047) # 1024) - 1024) as scale,
      base.typmod >= 4 or parsed.decimal is not null as is_limited
  ) as packed
  cross join lateral (
    select greatest(packed.precision - least(packed.scale, 0), packed.scale) as digits
  ) as needed
  cross join lateral (
    select
      case
        when parsed.digits is not null then
          case parsed.name when 'time' then 8 when 'datetimeoffset' then 26 else 19 end + case parsed.digits when 0 then 0 else parsed.digits + 1 end
        when coalesce(parsed.name, announced.name) not in ('decimal', 'numeric') then null
        when not packed.is_limited then 38
        else least(needed.digits, 38)
      end as precision,
      case
        when parsed.digits is not null then parsed.digits
        when coalesce(parsed.name, announced.name) not in ('decimal', 'numeric') then null
        when not packed.is_limited or packed.scale > 38 then 18
        else greatest(packed.scale, 0)
      end as scale,
      -- bytes of a character
      case when coalesce(parsed.name, announced.name) in ('char', 'varchar', 'binary', 'varbinary') then 1 else 2 end
        as width,
      case
        when parsed.name is not null then coalesce(parsed.length, case when parsed.is_max then -1 end)
        when base.type in ('pg_catalog.varchar'::regtype, 'pg_catalog.bpchar'::regtype)
          and packed.is_limited and base.typmod - 4 <= 4000 then base.typmod - 4
        else announced.characters
      end as characters
  ) as measured
$$;
comment on function sys.described_type(oid, integer, text) is
$$The T-SQL type of a PostgreSQL type with its modifier, or the declared one, as the gateway announces it to clients of 7.3
and later (name to ss_nullable) and to those of TDS 5.0 (ase_…).$$;
