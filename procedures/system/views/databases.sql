-- Databases: the schemas that the caller may use. Their numbers, from 5 as in SQL Server, are by age and the same for all callers.
create view sys.every_database as
select
  numbered.oid,
  numbered.nspname as name,
  4 + numbered.number::integer as number,
  numbered.nspowner as owner
from (
  select
    oid, nspname, nspowner,
    row_number() over (order by oid) as number
  from pg_catalog.pg_namespace
  where nspname not in ('pg_catalog', 'pg_toast', 'information_schema', 'sys', 'sybsystemprocs',
      'tsql', 'tsql_global', 'tsql_information_schema')
    and nspname not like 'pg\_temp\_%' and nspname not like 'pg\_toast\_temp\_%'
    and oid not in (select schemas.oid from sys.every_inner_schema as schemas)
) as numbered
where pg_catalog.has_schema_privilege(numbered.oid, 'usage');

-- With those of SQL Server that clients may use: the login's own database, and its temporary tables (sys.enter).
create view sys.every_named_database as
select name, number from sys.every_database
union all
values ('master'::name, 1), ('tempdb', 2);

create function sys.size_of(schema oid) returns bigint
language sql stable
as $$
  select coalesce(sum(pg_catalog.pg_total_relation_size(relations.oid)), 0)::bigint
  from pg_catalog.pg_class as relations
  where relations.relnamespace = schema and relations.relkind in ('r', 'm')
$$;

create view sys.databases as
select
  name::sys.sysname as name,
  number as database_id,
  null::integer as source_database_id, null::bytea as owner_sid, null::timestamp as create_date,
  120::smallint as compatibility_level,
  sys.collation_of_database(name)::sys.sysname as collation_name,
  0::smallint as user_access, 'MULTI_USER'::sys.sysname as user_access_desc, false as is_read_only,
  false as is_auto_close_on, false as is_auto_shrink_on, 0::smallint as state, 'ONLINE'::sys.sysname as state_desc,
  false as is_in_standby, false as is_cleanly_shutdown, false as is_supplemental_logging_enabled,
  0::smallint as snapshot_isolation_state, 'OFF'::sys.sysname as snapshot_isolation_state_desc,
  true as is_read_committed_snapshot_on, 1::smallint as recovery_model, 'FULL'::sys.sysname as recovery_model_desc
from sys.every_named_database;
comment on view sys.databases is 'SQL Server: Catalog Views, sys.databases';

create view sys.sysdatabases as
select
  name::sys.sysname as name,
  number::smallint as dbid,
  null::bytea as sid, 0::smallint as mode, 0 as status, 0 as status2, null::timestamp as crdate,
  null::timestamp as reserved, 0 as category, 120::smallint as cmptlevel, null::sys.line as filename,
  0::smallint as version, 1::smallint as suid
from sys.every_named_database;
comment on view sys.sysdatabases is
'SQL Server: System Compatibility Views, sys.sysdatabases; suid as in sysdatabases of ASE';

create view sys.schemas as
select listed.name::sys.sysname as name, listed.schema_id, listed.principal_id
from (
  select *
  from (values
    ('dbo', 1, 1),
    ('guest', 2, 2),
    ('INFORMATION_SCHEMA', 3, 3),
    ('sys', 4, 4),
    ('db_owner', 16384, 16384),
    ('db_accessadmin', 16385, 16385),
    ('db_securityadmin', 16386, 16386),
    ('db_ddladmin', 16387, 16387),
    ('db_backupoperator', 16389, 16389),
    ('db_datareader', 16390, 16390),
    ('db_datawriter', 16391, 16391),
    ('db_denydatareader', 16392, 16392),
    ('db_denydatawriter', 16393, 16393)
  ) as fixed
  union all
  select schemas.name::text, schemas.number, 1
  from sys.every_schema as schemas
  where schemas.number > 4 and pg_catalog.has_schema_privilege(schemas.oid, 'usage')
) as listed (name, schema_id, principal_id);
comment on view sys.schemas is
'SQL Server: Catalog Views, sys.schemas: dbo, and those of create schema in the current database';

create view sys.configurations as
select
  listed.number as configuration_id,
  listed.name::sys.sysname as name,
  listed.value, 0 as minimum,
  listed.value as maximum,
  listed.value as value_in_use,
  listed.name::sys.line as description,
  false as is_dynamic, false as is_advanced
from (values
  (103, 'user connections', pg_catalog.current_setting('max_connections')::integer),
  (115, 'nested triggers', 1),
  (1539, 'max degree of parallelism', pg_catalog.current_setting('max_parallel_workers_per_gather')::integer)
) as listed (number, name, value);
comment on view sys.configurations is 'SQL Server: sys.configurations, the settings that PostgreSQL has';
