-- Columns of tables and views. Those of all relations, whoever may see them:
create view sys.every_stored_column as
select
  columns.attrelid as relation,
  coalesce(declaration.shown, columns.attname::text) collate "C" as name,
  columns.attname as stored_name,
  columns.attnum as number,
  -- without gaps for dropped columns
  columns.attnum - (
    select count(*)::integer from pg_catalog.pg_attribute as dropped
    where dropped.attrelid = columns.attrelid and dropped.attnum > 0 and dropped.attnum < columns.attnum and dropped.attisdropped
  ) as position,
  columns.atttypid as type,
  columns.atttypmod as typmod,
  -- the declared T-SQL type, where PostgreSQL's has less information
  coalesce(declaration.type, domains.typname::text) as declared,
  declaration.user_type,
  columns.attnotnull as is_not_null,
  columns.attidentity <> '' as is_identity,
  columns.attgenerated <> '' as is_computed,
  defaults.oid as default_oid,
  defaults.definition as default_definition,
  comments.description as comment
from pg_catalog.pg_attribute as columns
left join sys.every_stored_default as defaults
  on columns.atthasdef and defaults.relation = columns.attrelid and defaults.column = columns.attnum
left join pg_catalog.pg_type as domains
  on domains.oid = columns.atttypid and domains.typtype = 'd' and domains.typnamespace = 'tsql'::regnamespace
left join pg_catalog.pg_description as comments
  on comments.objoid = columns.attrelid
  and comments.classoid = 'pg_catalog.pg_class'::regclass
  and comments.objsubid = columns.attnum
cross join lateral sys.declaration(comments.description) as declaration
where columns.attnum > 0 and not columns.attisdropped;

create function sys.may_see(relation oid, number smallint) returns boolean
language sql stable
as $$ select pg_catalog.has_column_privilege(relation, number, 'select, insert, update, references') $$;

-- The sequence number and the time of a log's rows are never null.
create function sys.is_nullable(is_not_null boolean, column_name name, is_log boolean) returns boolean
language sql immutable
as $$ select not (is_not_null or is_log and column_name in ('seq_no', 'time')) $$;

-- Those that the caller may select, insert or update.
create view sys.every_column as
select
  columns.*,
  relations.schema as table_schema,
  relations.name as table_name,
  relations.type as table_type,
  sys.is_nullable(columns.is_not_null, columns.stored_name, relations.stored <> relations.oid) as is_nullable
from sys.every_relation as relations
join sys.every_stored_column as columns on columns.relation = relations.oid
where sys.may_see(relations.oid, columns.number);

create view sys.columns as
select
  relations.object_id,
  columns.name::sys.sysname as name,
  columns.number::integer as column_id,
  types.system_type_id::smallint as system_type_id,
  case when columns.user_type is null then types.user_type_id
    else (select users.oid::integer from sys.user_types_named(columns.user_type, relations.namespaces) as users)
  end as user_type_id,
  types.bytes::smallint as max_length,
  types.digits::smallint as precision,
  types.scale::smallint as scale,
  sys.collation_of(types.system_type_id, columns.type, relations.collation_name) as collation_name,
  sys.is_nullable(columns.is_not_null, columns.stored_name, relations.stored <> relations.oid) as is_nullable,
  -- of texts, bytes and sql_variants
  types.system_type_id in (98, 165, 167, 173, 175, 231, 239) as is_ansi_padded,
  false as is_rowguidcol, columns.is_identity, columns.is_computed, false as is_filestream, false as is_replicated,
  false as is_non_sql_subscribed, false as is_merge_published, false as is_dts_replicated, false as is_xml_document,
  0 as xml_collection_id,
  case when columns.is_computed then 0 else coalesce(columns.default_oid::integer, 0) end as default_object_id,
  0 as rule_object_id, false as is_sparse, false as is_column_set, 0::smallint as generated_always_type,
  'NOT_APPLICABLE'::sys.sysname as generated_always_type_desc, false as is_hidden, false as is_masked
from sys.shown_relations(null) as relations
join sys.every_stored_column as columns on columns.relation = relations.oid
cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
where sys.may_see(relations.oid, columns.number);
comment on view sys.columns is 'SQL Server: Catalog Views, sys.columns';

create view sys.all_columns as
select * from sys.columns;

create view sys.computed_columns as
select
  columns.*,
  defaults.definition, true as uses_database_collation, true as is_persisted
from sys.columns as columns
join sys.every_stored_default as defaults
  on defaults.relation = columns.object_id::oid and defaults.column = columns.column_id
where columns.is_computed;
comment on view sys.computed_columns is 'SQL Server: Catalog Views, sys.computed_columns';

create view sys.identity_columns as
select
  columns.*,
  sequences.seqstart as seed_value,
  sequences.seqincrement as increment_value,
  case when pg_catalog.has_sequence_privilege(sequences.seqrelid, 'select, usage')
    then pg_catalog.pg_sequence_last_value(sequences.seqrelid) end as last_value,
  false as is_not_for_replication
from sys.columns as columns
join pg_catalog.pg_depend as depending
  on depending.refclassid = 'pg_catalog.pg_class'::regclass
  and depending.refobjid = columns.object_id::oid
  and depending.refobjsubid = columns.column_id
  and depending.classid = 'pg_catalog.pg_class'::regclass
  and depending.deptype = 'i'
join pg_catalog.pg_sequence as sequences on sequences.seqrelid = depending.objid
where columns.is_identity;
comment on view sys.identity_columns is 'SQL Server: Catalog Views, sys.identity_columns';

create view sys.default_constraints as
select
  objects.*,
  defaults.column::integer as parent_column_id,
  defaults.definition,
  defaults.name is null as is_system_named
from sys.shown_objects(null, '{D}') as objects
join sys.every_stored_default as defaults on defaults.oid = objects.object_id::oid;
comment on view sys.default_constraints is 'SQL Server: Catalog Views, sys.default_constraints';

-- Parameters of procedures, as callers see them: a row argument unfolded into its fields; those of procedures
-- compiled from T-SQL without their @, and without the argument that is the return status. Those of all procedures:
create view sys.every_stored_parameter as
select routines.oid as procedure, parameters.*
from pg_catalog.pg_proc as routines
-- of each procedure, so that a query for one reads no other
cross join lateral (
  select
    row_number() over (order by arguments.position, coalesce(fields.attnum, 0))::integer as position,
    coalesce(fields.attname::text, ltrim(routines.proargnames[arguments.position], '@'), '') as name,
    coalesce(fields.atttypid, arguments.type) as type,
    coalesce(fields.atttypmod, -1) as typmod,
    -- the types of the parameters of T-SQL
    nullif(split_part(substring(routines.prosrc from '.*\n-- takes ([^\n]+)\n'), ';',
      (dense_rank() over (order by arguments.position))::integer), '') as declared,
    moded.mode in ('o', 'b') as is_output
  from unnest(coalesce(routines.proallargtypes, routines.proargtypes::oid[])) with ordinality as arguments (type, position)
  cross join lateral (select coalesce(routines.proargmodes[arguments.position], 'i')) as moded (mode)
  join pg_catalog.pg_type as types on types.oid = arguments.type
  left join pg_catalog.pg_attribute as fields
    on types.typtype = 'c' and fields.attrelid = types.typrelid
    and fields.attnum > 0 and not fields.attisdropped
    and moded.mode = 'i'
  where moded.mode in ('i', 'o', 'b') and (moded.mode, routines.proargnames[arguments.position]) is distinct from ('o', 'return_status')
) as parameters;

create view sys.parameters as
select
  routines.object_id,
  ('@' || parameters.name)::sys.sysname as name,
  parameters.position as parameter_id,
  types.system_type_id::smallint as system_type_id,
  types.user_type_id,
  types.bytes::smallint as max_length,
  types.digits::smallint as precision,
  types.scale::smallint as scale,
  parameters.is_output, false as is_cursor_ref,
  -- SQL Server has defaults of CLR parameters alone here
  false as has_default_value, false as is_xml_document, null::text as default_value, 0 as xml_collection_id,
  false as is_readonly, true as is_nullable
from sys.shown_routines(null) as routines
join sys.every_stored_parameter as parameters on parameters.procedure = routines.oid
cross join lateral sys.described_type(parameters.type, parameters.typmod, parameters.declared) as types
where routines.number = 1;
comment on view sys.parameters is 'SQL Server: Catalog Views, sys.parameters';

create view sys.all_parameters as
select * from sys.parameters;

create view sys.syscolumns as
select
  columns.name::sys.sysname as name,
  relations.object_id as id,
  types.system_type_id::smallint as xtype,
  0::smallint as typestat,
  case when columns.user_type is null then types.user_type_id
    else (select users.usertype from sys.user_types_named(columns.user_type, relations.namespaces) as users)
  end::smallint as xusertype,
  types.bytes::smallint as length,
  types.digits::smallint as xprec,
  types.scale::smallint as xscale,
  columns.number::smallint as colid,
  0::smallint as xoffset, 0::smallint as bitpos, 0::smallint as reserved, 0::smallint as colstat,
  coalesce(columns.default_oid::integer, 0) as cdefault,
  0 as domain, 0::smallint as number,
  columns.number::smallint as colorder,
  null::bytea as autoval, 0::smallint as offset, null::integer as collationid, null::integer as language,
  case when sys.is_nullable(columns.is_not_null, columns.stored_name, relations.stored <> relations.oid) then 8 else 0 end + case when columns.is_identity then 128 else 0 end::smallint
    as status,
  -- intn, floatn, moneyn and datetimn of columns that may be null
  case when types.system_type_id in (48, 52, 56, 58, 59, 60, 61, 62, 122)
      and sys.is_nullable(columns.is_not_null, columns.stored_name, relations.stored <> relations.oid)
    then types.ss_nullable else types.storage
  end::smallint as type,
  case when columns.user_type is null then types.usertype
    else (select users.usertype from sys.user_types_named(columns.user_type, relations.namespaces) as users)
  end::smallint as usertype,
  null::sys.line as printfmt,
  case when types.characters is not null then types.characters
    when types.digits > 0 then types.digits end::smallint as prec,
  case when types.radix = 10 then types.scale end as scale,
  columns.is_computed::integer as iscomputed,
  0 as isoutparam,
  sys.is_nullable(columns.is_not_null, columns.stored_name, relations.stored <> relations.oid)::integer as isnullable,
  null::sys.sysname as collation
from sys.shown_relations(null) as relations
join sys.every_stored_column as columns on columns.relation = relations.oid
cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
where sys.may_see(relations.oid, columns.number)
union all
select
  ('@' || parameters.name)::sys.sysname,
  routines.object_id,
  types.system_type_id::smallint,
  0::smallint,
  types.user_type_id::smallint,
  types.bytes::smallint,
  types.digits::smallint,
  types.scale::smallint,
  parameters.position::smallint,
  0::smallint, 0::smallint, 0::smallint, 0::smallint, 0, 0,
  0::smallint,
  parameters.position::smallint,
  null::bytea, 0::smallint, null::integer, null::integer,
  case when parameters.is_output then 64 else 0 end,
  types.storage::smallint,
  types.usertype::smallint,
  null::sys.line,
  case when types.characters is not null then types.characters
    when types.digits > 0 then types.digits end::smallint,
  case when types.radix = 10 then types.scale end,
  0,
  parameters.is_output::integer,
  1, null::sys.sysname
from sys.shown_routines(null) as routines
join sys.every_stored_parameter as parameters on parameters.procedure = routines.oid
cross join lateral sys.described_type(parameters.type, parameters.typmod, parameters.declared) as types
where routines.number = 1;
comment on view sys.syscolumns is
'SQL Server: System Compatibility Views, sys.syscolumns, with the parameters of procedures; status as in syscolumns of ASE';
