-- INFORMATION_SCHEMA of T-SQL (SQL Server: System Information Schema Views), with T-SQL's types and schemas, unlike
-- PostgreSQL's own information_schema.

create view tsql_information_schema.schemata as
select
  (select sys.db_name()) as catalog_name,
  schemas.name as schema_name,
  'dbo'::sys.sysname as schema_owner, null::sys.sysname as default_character_set_catalog,
  null::sys.sysname as default_character_set_schema, 'UTF8'::sys.sysname as default_character_set_name
from sys.schemas as schemas;

create view tsql_information_schema.tables as
select
  relations.database_name as table_catalog,
  relations.schema as table_schema,
  relations.name as table_name,
  case relations.type when 'V' then 'VIEW' else 'BASE TABLE' end::character varying(10) as table_type
from sys.shown_relations(null) as relations;

create view tsql_information_schema.columns as
select
  relations.database_name as table_catalog,
  relations.schema as table_schema,
  relations.name as table_name,
  columns.name::sys.sysname as column_name,
  columns.position as ordinal_position,
  case when not columns.is_computed then columns.default_definition end::character varying(4000) as column_default,
  case when sys.is_nullable(columns.is_not_null, columns.stored_name, relations.stored <> relations.oid) then 'YES' else 'NO'
    end::character varying(3) as is_nullable,
  case types.name when 'sysname' then 'nvarchar' else types.name end::sys.sysname as data_type,
  sized.characters as character_maximum_length,
  sized.bytes as character_octet_length,
  case when types.radix is not null then types.digits end::smallint as numeric_precision,
  types.radix::smallint as numeric_precision_radix,
  case when types.radix = 10 then types.scale end as numeric_scale,
  case when types.sub is not null then types.scale end::smallint as datetime_precision,
  null::sys.sysname as character_set_catalog, null::sys.sysname as character_set_schema,
  case when types.system_type_id in (99, 231, 239) then 'UNICODE' when types.system_type_id in (35, 167, 175) then 'iso_1'
    end::sys.sysname as character_set_name,
  null::sys.sysname as collation_catalog, null::sys.sysname as collation_schema,
  sys.collation_of(types.system_type_id, columns.type, relations.collation_name) as collation_name,
  case when columns.user_type is not null then relations.database_name end as domain_catalog,
  case when columns.user_type is not null then 'dbo' end::sys.sysname as domain_schema,
  columns.user_type::sys.sysname as domain_name
from sys.shown_relations(null) as relations
join sys.every_stored_column as columns on columns.relation = relations.oid
cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
cross join lateral (
  select
    case when types.name in ('text', 'image') then 2147483647 when types.name = 'ntext' then 1073741823
      when types.name = 'sysname' then 128 when types.name in ('binary', 'varbinary', 'xml') then types.bytes
      else types.characters end,
    case when types.name in ('text', 'image') then 2147483647 when types.name = 'ntext' then 2147483646
      when types.name in ('binary', 'varbinary', 'xml', 'sysname') or types.characters is not null then types.bytes end
) as sized (characters, bytes)
where sys.may_see(relations.oid, columns.number);

create view tsql_information_schema.views as
select
  relations.database_name as table_catalog,
  relations.schema as table_schema,
  relations.name as table_name,
  source.definition as view_definition,
  'NONE'::character varying(7) as check_option, 'NO'::character varying(2) as is_updatable
from sys.shown_relations(null) as relations
cross join lateral sys.definition_of(relations.oid, 'V') as source
where relations.type = 'V';

create view tsql_information_schema.table_constraints as
select
  (select sys.db_name()) as constraint_catalog,
  relations.schema::sys.sysname as constraint_schema,
  constraints.name::sys.sysname as constraint_name,
  (select sys.db_name()) as table_catalog,
  relations.schema::sys.sysname as table_schema,
  relations.name::sys.sysname as table_name,
  case constraints.type when 'PK' then 'PRIMARY KEY' when 'UQ' then 'UNIQUE' when 'F' then 'FOREIGN KEY'
    else 'CHECK' end::character varying(11) as constraint_type,
  'NO'::character varying(2) as is_deferrable, 'NO'::character varying(2) as initially_deferred
from sys.every_constraint as constraints
join sys.every_relation as relations on relations.oid = constraints.relation;

create view tsql_information_schema.key_column_usage as
select
  (select sys.db_name()) as constraint_catalog,
  relations.schema::sys.sysname as constraint_schema,
  constraints.name::sys.sysname as constraint_name,
  (select sys.db_name()) as table_catalog,
  relations.schema::sys.sysname as table_schema,
  relations.name::sys.sysname as table_name,
  sys.shown_column(columns.attrelid, columns.attnum, columns.attname)::sys.sysname as column_name,
  members.position::integer as ordinal_position
from sys.every_constraint as constraints
join sys.every_relation as relations on relations.oid = constraints.relation
cross join lateral unnest(constraints.columns) with ordinality as members (number, position)
join pg_catalog.pg_attribute as columns
  on columns.attrelid = constraints.relation and columns.attnum = members.number
where constraints.type in ('PK', 'UQ', 'F');

create view tsql_information_schema.constraint_column_usage as
select
  (select sys.db_name()) as table_catalog,
  relations.schema::sys.sysname as table_schema,
  relations.name::sys.sysname as table_name,
  sys.shown_column(columns.attrelid, columns.attnum, columns.attname)::sys.sysname as column_name,
  (select sys.db_name()) as constraint_catalog,
  relations.schema::sys.sysname as constraint_schema,
  constraints.name::sys.sysname as constraint_name
from sys.every_constraint as constraints
join sys.every_relation as relations on relations.oid = constraints.relation
cross join lateral unnest(constraints.columns) as members (number)
join pg_catalog.pg_attribute as columns
  on columns.attrelid = constraints.relation and columns.attnum = members.number;

create view tsql_information_schema.constraint_table_usage as
select distinct
  table_catalog, table_schema, table_name, constraint_catalog, constraint_schema, constraint_name
from tsql_information_schema.constraint_column_usage;

create view tsql_information_schema.referential_constraints as
select
  (select sys.db_name()) as constraint_catalog,
  constraints.schema::sys.sysname as constraint_schema,
  constraints.name::sys.sysname as constraint_name,
  (select sys.db_name()) as unique_constraint_catalog,
  coalesce(schemas.name, 'dbo')::sys.sysname as unique_constraint_schema,
  sys.shown_index(indexes.oid, keys.oid, keys.conname, indexes.relname, tables.relname)::sys.sysname as unique_constraint_name,
  'SIMPLE'::character varying(7) as match_option,
  replace(foreign_keys.update_referential_action_desc, '_', ' ')::character varying(11) as update_rule,
  replace(foreign_keys.delete_referential_action_desc, '_', ' ')::character varying(11) as delete_rule
from sys.every_constraint as constraints
join sys.foreign_keys as foreign_keys on foreign_keys.object_id = constraints.oid::integer
join pg_catalog.pg_class as tables on tables.oid = constraints.referenced
left join sys.every_schema as schemas on schemas.oid = tables.relnamespace
join pg_catalog.pg_class as indexes on indexes.oid = constraints.index
left join pg_catalog.pg_constraint as keys on keys.conindid = constraints.index and keys.contype in ('p', 'u')
where constraints.type = 'F';

create view tsql_information_schema.check_constraints as
select
  (select sys.db_name()) as constraint_catalog,
  sys.schema_name(checks.schema_id) as constraint_schema,
  checks.name as constraint_name,
  checks.definition as check_clause
from sys.check_constraints as checks;

create view tsql_information_schema.routines as
select
  routines.database_name as specific_catalog,
  routines.schema as specific_schema,
  routines.name as specific_name,
  routines.database_name as routine_catalog,
  routines.schema as routine_schema,
  routines.name as routine_name,
  case routines.type when 'P' then 'PROCEDURE' else 'FUNCTION' end::character varying(20) as routine_type,
  case when routines.type in ('IF', 'TF') then 'TABLE' end::sys.sysname as data_type,
  'SQL'::character varying(30) as routine_body,
  pg_catalog.left(source.definition, 4000)::character varying(4000) as routine_definition,
  'MODIFIES'::character varying(30) as sql_data_access, null::timestamp as created, null::timestamp as last_altered
from sys.shown_routines(null) as routines
cross join lateral sys.definition_of(routines.oid, 'P') as source
where routines.number = 1;

create view tsql_information_schema.parameters as
select
  routines.database_name as specific_catalog,
  routines.schema as specific_schema,
  routines.name as specific_name,
  parameters.position as ordinal_position,
  case when parameters.is_output then 'INOUT' else 'IN' end::character varying(10) as parameter_mode,
  'NO'::character varying(10) as is_result, 'NO'::character varying(10) as as_locator,
  ('@' || parameters.name)::sys.sysname as parameter_name,
  types.name as data_type,
  types.characters as character_maximum_length,
  case when types.characters is not null then types.bytes end as character_octet_length,
  case when types.radix is not null then types.digits end::smallint as numeric_precision,
  types.radix::smallint as numeric_precision_radix,
  case when types.radix = 10 then types.scale end as numeric_scale,
  case when types.sub is not null then types.scale end::smallint as datetime_precision
from sys.shown_routines(null) as routines
join sys.every_stored_parameter as parameters on parameters.procedure = routines.oid
cross join lateral sys.described_type(parameters.type, parameters.typmod, parameters.declared) as types
where routines.number = 1;

create view tsql_information_schema.table_privileges as
select
  'dbo'::sys.sysname as grantor,
  current_user::sys.sysname as grantee,
  (select sys.db_name()) as table_catalog,
  relations.schema::sys.sysname as table_schema,
  relations.name::sys.sysname as table_name,
  rights.name::character varying(10) as privilege_type,
  'NO'::character varying(3) as is_grantable
from sys.every_relation as relations
cross join (values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('REFERENCES')) as rights (name)
where pg_catalog.has_table_privilege(relations.oid, rights.name);

create view tsql_information_schema.sequences as
select
  (select sys.db_name()) as sequence_catalog,
  sys.schema_name(sequences.schema_id) as sequence_schema,
  sequences.name as sequence_name,
  types.name as data_type,
  sequences.precision as numeric_precision,
  10::smallint as numeric_precision_radix,
  sequences.scale::integer as numeric_scale,
  sequences.start_value, sequences.minimum_value, sequences.maximum_value, sequences.increment,
  sequences.is_cycling::integer as cycle_option,
  null::sys.sysname as declared_data_type, null::smallint as declared_numeric_precision,
  null::integer as declared_numeric_scale
from sys.sequences as sequences
join sys.every_system_type as types on types.user_type_id = sequences.user_type_id;
