-- The types that the catalogue shows, with those of users, and their collations.
create function sys.collation_of_database(schema text) returns text
language sql stable
as $$
  select coalesce(substring(
    pg_catalog.obj_description(to_regnamespace(quote_ident(schema)), 'pg_namespace') from '^T-SQL collation (\w+)'),
    'Latin1_General_100_BIN2_UTF8')
$$;
comment on function sys.collation_of_database(text) is
'The default collation of a database: what the comment of its schema says, otherwise the binary one.';

-- The collation of text, ntext, varchar, char, nvarchar and nchar; null for other types.
create function sys.collation_of(system_type_id integer, type oid, of_database text) returns sys.sysname
language sql stable
as $$
  -- PostgreSQL does not keep the name of a column's: that of its database, if it is one of these
  select case
    when system_type_id not in (35, 99, 167, 175, 231, 239) then null
    when type is null then of_database
    when type in (to_regtype('tsql.ci_varchar'), to_regtype('tsql.ci_char'))
      then case when of_database ~* '_CI_AS' then of_database else 'Latin1_General_CI_AS' end
    when of_database ~* '_BIN' then of_database
    else 'Latin1_General_100_BIN2_UTF8'
  end::sys.sysname
$$;

-- The user types of the database. usertype and xusertype are too short for the number of an object.
create view sys.every_stored_user_type as
select
  domains.oid,
  domains.typnamespace as namespace,
  replace(matched.parts[1], '""', '"')::sys.sysname as name,
  matched.parts[2] as declared,
  matched.parts[3] = 'null' as is_nullable,
  (100 + domains.oid::bigint % 32000)::smallint as usertype,
  domains.typowner as owner
from pg_catalog.pg_type as domains
cross join lateral regexp_match(
  pg_catalog.obj_description(domains.oid, 'pg_type'), '^T-SQL "((?:[^"]|"")+)" ([a-z0-9_]+(?:\([^)]*\))?) (null|not null|identity)'
) as matched (parts)
where domains.typtype = 'd' and matched.parts is not null;

create view sys.every_user_type as
select * from sys.every_stored_user_type
where namespace = any (array(select schemas.oid from sys.every_schema as schemas));

create function sys.user_types_named(name text, namespaces oid[]) returns setof sys.every_stored_user_type
language sql stable
as $$
  select * from sys.every_stored_user_type as users
  where users.namespace = any (user_types_named.namespaces) and lower(users.name) = lower(user_types_named.name)
$$;

create view sys.table_types as
select
  replace(matched.parts[1], '""', '"')::sys.sysname as name,
  243::smallint as system_type_id,
  domains.oid::integer as user_type_id,
  1 as schema_id, null::integer as principal_id, -1::smallint as max_length, 0::smallint as precision,
  0::smallint as scale, null::sys.sysname as collation_name, false as is_nullable, true as is_user_defined,
  false as is_assembly_type, 0 as default_object_id, 0 as rule_object_id, true as is_table_type,
  domains.oid::integer as type_table_object_id,
  false as is_memory_optimized
from pg_catalog.pg_type as domains
cross join lateral regexp_match(
  pg_catalog.obj_description(domains.oid, 'pg_type'), '^T-SQL "((?:[^"]|"")+)" table *\('
) as matched (parts)
where domains.typtype = 'd' and matched.parts is not null
  and domains.typnamespace = any (array(select schemas.oid from sys.every_schema as schemas));
comment on view sys.table_types is
'SQL Server: Catalog Views, sys.table_types. sys.objects and sys.columns leave the tables of these types out.';

create view sys.types as
select
  name,
  system_type_id::smallint as system_type_id,
  user_type_id, 4 as schema_id, null::integer as principal_id,
  bytes::smallint as max_length,
  precision::smallint as precision,
  scale::smallint as scale,
  sys.collation_of(system_type_id, null, (select sys.collation_of_database(current_schema()))) as collation_name,
  name not in ('timestamp', 'sysname') as is_nullable,
  false as is_user_defined, false as is_assembly_type, 0 as default_object_id, 0 as rule_object_id,
  false as is_table_type
from sys.every_system_type
union all
select
  users.name, types.system_type_id::smallint, users.oid::integer, 1, null, types.bytes::smallint, coalesce(types.digits, 0)::smallint,
  coalesce(types.scale, 0)::smallint, sys.collation_of(types.system_type_id, null, (select sys.collation_of_database(current_schema()))), users.is_nullable, true, false, 0, 0, false
from sys.every_user_type as users
cross join lateral sys.described_type('pg_catalog.text'::regtype, -1, users.declared) as types
union all
select
  name, system_type_id, user_type_id, schema_id, principal_id, max_length, precision, scale, collation_name, is_nullable,
  is_user_defined, is_assembly_type, default_object_id, rule_object_id, is_table_type
from sys.table_types;
comment on view sys.types is 'SQL Server: Catalog Views, sys.types';

create view sys.systypes as
select
  name,
  system_type_id::smallint as xtype,
  0::smallint as status,
  user_type_id::smallint as xusertype,
  bytes::smallint as length,
  precision::smallint as xprec,
  scale::smallint as xscale,
  0 as tdefault, 0 as domain, 4::smallint as uid, 0::smallint as reserved, null::integer as collationid,
  usertype::smallint as usertype,
  (name in ('char', 'varchar', 'nchar', 'nvarchar', 'sysname', 'binary', 'varbinary')) as variable,
  (name not in ('timestamp', 'sysname')) as allownulls,
  storage::smallint as type,
  null::sys.line as printfmt,
  case when system_type_id in (231, 239) then bytes / 2 when precision > 0 then precision else bytes end::smallint
    as prec,
  case when radix = 10 then scale end::smallint as scale,
  null::sys.sysname as collation
from sys.every_system_type
union all
select
  users.name, types.system_type_id::smallint, 0::smallint, users.usertype, types.bytes::smallint, coalesce(types.digits, 0)::smallint,
  coalesce(types.scale, 0)::smallint, 0, 0, 1::smallint, 0::smallint, null, users.usertype,
  types.name in ('char', 'varchar', 'nchar', 'nvarchar', 'sysname', 'binary', 'varbinary'), users.is_nullable,
  types.storage::smallint, null, coalesce(types.characters, types.digits, types.bytes)::smallint,
  case when types.radix = 10 then types.scale end::smallint, null
from sys.every_user_type as users
cross join lateral sys.described_type('pg_catalog.text'::regtype, -1, users.declared) as types;
comment on view sys.systypes is
'SQL Server: System Compatibility Views, sys.systypes; usertype and type as in systypes of ASE, each type its own';
