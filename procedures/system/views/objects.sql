-- Objects of the current database: tables and views, their constraints, and, in every database, the procedures that the
-- caller may execute. An id is PostgreSQL's oid. Information that PostgreSQL does not keep, such as the creation time, is
-- null.

-- A T-SQL procedure may be a function in PostgreSQL; its text determines its kind. Those of ringlog and of other databases
-- are dbo's.
create view sys.every_numbered_procedure as
select
  procedures.oid,
  -- with its number in its group
  procedures.proname,
  case when procedures.proname ~ '~[0-9a-f]{16}$'
    then sys.named_by_text(procedures.proname, comments.description)
    else pg_catalog.regexp_replace(procedures.proname, ';\d+$', '')
  end collate "C" as name,
  pg_catalog.regexp_replace(procedures.proname, ';\d+$', '')::name as stored,
  -- in its group
  coalesce(substring(procedures.proname from ';(\d+)$')::smallint, 1::smallint) as number,
  procedures.pronamespace as namespace,
  schemas.nspname as schema,
  coalesce(here.name, 'dbo') as shown_schema,
  coalesce(here.number, 1) as schema_id,
  case
    -- the comment first: bodies are long, and stored elsewhere
    when comments.description ~* concat('^', blank.text, '*create', blank.text, '+(or\s+(alter|replace)\s+)?function\M') is not true
      or procedures.prosrc not like '%-- compiled from T-SQL, %'
    then 'P'
    when not procedures.proretset then 'FN'
    when procedures.prolang = sql.oid then 'IF'
    else 'TF'
  end as type,
  procedures.prosrc like '%-- compiled from T-SQL, %' as is_compiled
from pg_catalog.pg_proc as procedures
join pg_catalog.pg_namespace as schemas on schemas.oid = procedures.pronamespace
left join sys.every_schema as here on here.oid = procedures.pronamespace
left join pg_catalog.pg_description as comments
  on comments.objoid = procedures.oid and comments.classoid = 'pg_catalog.pg_proc'::regclass and comments.objsubid = 0
cross join (select oid from pg_catalog.pg_language where lanname = 'sql') as sql
cross join (values ('(\s|--[^\n]*\n|/\*([^*]|\*+[^*/])*\*+/)')) as blank (text)
where procedures.prokind in ('f', 'p')
  and procedures.provariadic = 0
  and procedures.prorettype not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
  -- an array: PostgreSQL believes that few schemas are left, and would read all procedures for each; and only for
  -- procedures of these schemas what takes time
  and case
    when procedures.pronamespace = any (array(
      select namespaces.oid
      from pg_catalog.pg_namespace as namespaces
      where namespaces.nspname not in ('pg_catalog', 'information_schema', 'sys', 'sybsystemprocs', 'tsql', 'tsql_global',
          'tsql_information_schema')
        and pg_catalog.has_schema_privilege(namespaces.oid, 'usage')
    ))
    then pg_catalog.has_function_privilege(procedures.oid, 'execute')
      and (procedures.prolang <> sql.oid or procedures.prosrc !~ '-- (rule|default) of T-SQL$')
  end
  -- objects of extensions count as PostgreSQL's own
  and not exists (
    select from pg_catalog.pg_depend as depending
    where depending.classid = 'pg_catalog.pg_proc'::regclass
      and depending.objid = procedures.oid and depending.deptype = 'e'
  );

-- A group counts as its first procedure.
create view sys.every_procedure as
select * from sys.every_numbered_procedure where number = 1;

-- Those of the database, and ringlog's own.
create view sys.every_listed_procedure as
select * from sys.every_numbered_procedure
where namespace = any (array(select schemas.oid from sys.every_schema as schemas union all select 'ringlog'::regnamespace));

create function sys.shown_routines(database text) returns table (
  oid oid, object_id integer, number smallint, schema sys.sysname, name sys.sysname, type text, database_name sys.sysname
)
language plpgsql stable rows 1000000
as $$
#variable_conflict use_column
declare
  before constant text := sys.enter(database);
  of_database constant sys.sysname := sys.db_name();
begin
  return query
  select
    procedures.oid,
    (min(procedures.oid) filter (where procedures.number = 1) over (partition by procedures.namespace, procedures.stored))::integer,
    procedures.number, procedures.shown_schema::sys.sysname, procedures.name::sys.sysname, procedures.type, of_database
  from sys.every_listed_procedure as procedures;
  perform sys.leave(before);
end
$$;
comment on function sys.shown_routines(text) is
$$The procedures and functions of a database (null: the current one), and ringlog's own, and the database's name. object_id is that
of the first of a group.$$;

create view sys.every_bindable as
select
  functions.oid,
  functions.proname as name,
  case when functions.prosrc like '%-- rule of T-SQL' then 'R' else 'D' end as type,
  schemas.name as schema,
  schemas.number as schema_id
from pg_catalog.pg_proc as functions
join sys.every_schema as schemas on schemas.oid = functions.pronamespace
where case when functions.pronamespace = any (array(select here.oid from sys.every_schema as here))
    and functions.prolang = (select oid from pg_catalog.pg_language where lanname = 'sql')
    then functions.prosrc ~ '-- (rule|default) of T-SQL$' end
  and pg_catalog.has_schema_privilege(functions.pronamespace, 'usage')
  and pg_catalog.has_function_privilege(functions.oid, 'execute');

create view sys.every_constraint as
select
  constraints.oid,
  coalesce(declaration.shown, constraints.conname::text) collate "C" as name,
  case constraints.contype when 'p' then 'PK' when 'u' then 'UQ' when 'f' then 'F' else 'C' end as type,
  relations.oid as relation,
  relations.schema, relations.schema_id,
  constraints.conindid as index,
  constraints.confrelid as referenced,
  constraints.conkey as columns,
  constraints.confkey as referenced_columns,
  constraints.confupdtype as update_action,
  constraints.confdeltype as delete_action,
  constraints.convalidated as is_validated
from pg_catalog.pg_constraint as constraints
join sys.every_relation as relations on relations.stored = constraints.conrelid
left join pg_catalog.pg_description as comments
  on comments.objoid = constraints.oid and comments.classoid = 'pg_catalog.pg_constraint'::regclass and comments.objsubid = 0
cross join lateral sys.declaration(comments.description) as declaration
where constraints.contype in ('p', 'u', 'f', 'c')
  -- a bound rule
  and constraints.conname not like 'T-SQL rule %';

-- Those of all relations.
create view sys.every_stored_default as
select
  defaults.oid,
  defaults.adrelid as relation,
  defaults.adnum as column,
  columns.attname as column_name,
  columns.attgenerated as generated,
  pg_catalog.replace(named.of_default[2], '''''', '''') as name,
  case columns.attgenerated
    when '' then sys.default_text(coalesce(named.of_default[1], source.expression))
    else sys.expression_text(source.expression, defaults.adrelid)
  end as definition
from pg_catalog.pg_attrdef as defaults
join pg_catalog.pg_attribute as columns
  on columns.attrelid = defaults.adrelid and columns.attnum = defaults.adnum
-- subqueries and not functions in FROM, which PostgreSQL would call for columns without a need
cross join lateral (select pg_catalog.pg_get_expr(defaults.adbin, defaults.adrelid)) as source (expression)
-- tsql.named_default has the value and the name
cross join lateral (
  select pg_catalog.regexp_match(source.expression, '^tsql\.named_default\((.*), ''((?:[^'']|'''')*)''::text\)$')
) as named (of_default);

create view sys.every_default as
select
  defaults.oid,
  coalesce(defaults.name, 'DF_' || relations.name || '_' || defaults.column_name) as name,
  relations.oid as relation,
  relations.schema, relations.schema_id, defaults.generated, defaults.definition
from sys.every_stored_default as defaults
join sys.every_relation as relations on relations.oid = defaults.relation;

-- T-SQL triggers, one for each function that has the text; triggers of further events are parts of it.
create view sys.every_trigger as
select
  functions.oid,
  functions.proname as name,
  triggers.tgrelid as relation,
  relations.schema, relations.schema_id
from pg_catalog.pg_trigger as triggers
join sys.every_relation as relations on relations.oid = triggers.tgrelid
join pg_catalog.pg_proc as functions on functions.oid = triggers.tgfoid and functions.proname = triggers.tgname
where not triggers.tgisinternal
  and functions.prosrc like '%-- compiled from T-SQL, %'
  -- the name that tsql.create_trigger gives the function of a further event
  and not exists (
    select from pg_catalog.pg_proc as first
    where first.pronamespace = functions.pronamespace
      and first.proname = substring(functions.proname from '^(.*) (?:insert|update|delete)$')::name
      and sys.comment_base(pg_catalog.obj_description(first.oid, 'pg_proc'))
        = sys.comment_base(pg_catalog.obj_description(functions.oid, 'pg_proc'))
  );

-- Sequences, but for those of identity columns.
create view sys.every_stored_sequence as
select
  classes.oid,
  classes.relname as name,
  classes.relnamespace as namespace,
  held.seqtypid as type,
  held.seqstart as start,
  held.seqincrement as increment,
  held.seqmin as least,
  held.seqmax as most,
  held.seqcycle as cycles,
  case when classes.relkind = 'S' and pg_catalog.has_sequence_privilege(classes.oid, 'select, usage')
    then pg_catalog.pg_sequence_last_value(classes.oid) end as last
from pg_catalog.pg_class as classes
join pg_catalog.pg_sequence as held on held.seqrelid = classes.oid
-- the function fails for other relations, and is called before the join
where case when classes.relkind = 'S' then pg_catalog.has_sequence_privilege(classes.oid, 'select, usage, update') end
  and not exists (
    select from pg_catalog.pg_depend as depending
    where depending.classid = 'pg_catalog.pg_class'::regclass and depending.objid = classes.oid and depending.deptype in ('a', 'i')
  );

create view sys.every_sequence as
select sequences.*, schemas.name as schema, schemas.number as schema_id
from sys.every_stored_sequence as sequences
join sys.every_schema as schemas on schemas.oid = sequences.namespace;

-- types: those that a part of it may have, by which PostgreSQL leaves out the others
create view sys.every_object as
select listed.*, kinds.description
from (
  select oid, name, 0::oid as parent, type, schema, schema_id, '{U,V}'::text[] as types from sys.every_relation
  union all
  select oid, name, 0, type, shown_schema, schema_id, '{P,FN,IF,TF}'::text[]
  from sys.every_procedure
  where namespace = any (array(
    select schemas.oid from sys.every_schema as schemas
    union all
    -- ringlog's own are those of the rings and logs
    select 'ringlog'::regnamespace where current_schema() in ('online', 'log')
  ))
  union all
  select oid, name, relation, type, schema, schema_id, '{PK,UQ,F,C}'::text[] from sys.every_constraint
  union all
  select oid, name, relation, 'D', schema, schema_id, '{D}'::text[] from sys.every_default where generated = ''
  union all
  select oid, name, relation, 'TR', schema, schema_id, '{TR}'::text[] from sys.every_trigger
  union all
  select oid, name, 0, type, schema, schema_id, '{R,D}'::text[] from sys.every_bindable
  union all
  select oid, name, 0, 'SO', schema, schema_id, '{SO}'::text[] from sys.every_sequence
) as listed
join (values
  ('U', 'USER_TABLE'),
  ('V', 'VIEW'),
  ('P', 'SQL_STORED_PROCEDURE'),
  ('FN', 'SQL_SCALAR_FUNCTION'),
  ('IF', 'SQL_INLINE_TABLE_VALUED_FUNCTION'),
  ('TF', 'SQL_TABLE_VALUED_FUNCTION'),
  ('TR', 'SQL_TRIGGER'),
  ('PK', 'PRIMARY_KEY_CONSTRAINT'),
  ('UQ', 'UNIQUE_CONSTRAINT'),
  ('F', 'FOREIGN_KEY_CONSTRAINT'),
  ('C', 'CHECK_CONSTRAINT'),
  ('D', 'DEFAULT_CONSTRAINT'),
  ('R', 'RULE'),
  ('SO', 'SEQUENCE_OBJECT')
) as kinds (type, description) on kinds.type = listed.type;

create function sys.shown_objects(database text, types text[]) returns table (
  name sys.sysname, object_id integer, principal_id integer, schema_id integer, parent_object_id integer,
  type character(2), type_desc sys.sysname, create_date timestamp, modify_date timestamp, is_ms_shipped boolean,
  is_published boolean, is_schema_published boolean
)
language plpgsql stable rows 1000000
as $$
#variable_conflict use_column
declare
  before constant text := sys.enter(database);
begin
  -- planned for these types: the views of others are not read
  return query execute format($query$
    select
      listed.name::sys.sysname, listed.oid::integer, null::integer, listed.schema_id, listed.parent::integer,
      listed.type::character(2), listed.description::sys.sysname, null::timestamp, null::timestamp, false, false, false
    from sys.every_object as listed
    where %L::text[] is null or listed.types && %1$L and listed.type = any (%1$L)
  $query$, types);
  perform sys.leave(before);
end
$$;
comment on function sys.shown_objects(text, text[]) is
'The objects of a database (null: the current one) that have one of these types (null: all), as in sys.objects.';

create view sys.objects as
select * from sys.shown_objects(null, null);
comment on view sys.objects is 'SQL Server: Catalog Views, sys.objects';

create view sys.all_objects as
select * from sys.objects;
comment on view sys.all_objects is
'SQL Server: Catalog Views, sys.all_objects. The system''s own views and procedures are left out.';

create view sys.tables as
select
  objects.*,
  case classes.relkind when 'p' then 2 end as lob_data_space_id,
  (
    select max(attnum)::integer from pg_catalog.pg_attribute where attrelid = classes.oid
  ) as max_column_id_used,
  true as uses_ansi_nulls, false as is_memory_optimized, false as is_external, 0::smallint as temporal_type,
  'NON_TEMPORAL_TABLE'::sys.sysname as temporal_type_desc
from sys.shown_objects(null, '{U}') as objects
-- by the oid, which has an index: a join by number would scan all relations for each
join pg_catalog.pg_class as classes on classes.oid = objects.object_id::oid;
comment on view sys.tables is 'SQL Server: Catalog Views, sys.tables';

create view sys.views as
select
  objects.*,
  false as is_replicated, false as has_opaque_metadata, false as with_check_option, false as is_date_correlation_view
from sys.shown_objects(null, '{V}') as objects;
comment on view sys.views is 'SQL Server: Catalog Views, sys.views';

create view sys.all_views as
select * from sys.views;

create view sys.procedures as
select
  objects.*,
  false as is_auto_executed, false as is_execution_replicated
from sys.shown_objects(null, '{P}') as objects;
comment on view sys.procedures is 'SQL Server: Catalog Views, sys.procedures';

create view sys.triggers as
select
  objects.name, objects.object_id, 1::smallint as parent_class, 'OBJECT_OR_COLUMN'::sys.sysname as parent_class_desc,
  objects.parent_object_id as parent_id,
  objects.type, objects.type_desc, objects.create_date, objects.modify_date, objects.is_ms_shipped,
  not exists (
    select from pg_catalog.pg_trigger as triggers
    where triggers.tgrelid = objects.parent_object_id::oid and triggers.tgfoid = objects.object_id::oid and triggers.tgenabled <> 'D'
  ) as is_disabled,
  false as is_not_for_replication, false as is_instead_of_trigger
from sys.shown_objects(null, '{TR}') as objects;
comment on view sys.triggers is 'SQL Server: Catalog Views, sys.triggers';

-- An empty view of a kind of objects that does not exist here.
create view sys.synonyms as
select objects.*, null::text as base_object_name from sys.objects as objects where false;

create view sys.sequences as
select
  objects.*,
  sequences.start::bigint as start_value,
  sequences.increment::bigint as increment,
  sequences.least::bigint as minimum_value,
  sequences.most::bigint as maximum_value,
  sequences.cycles as is_cycling,
  false as is_cached, null::integer as cache_size,
  types.system_type_id::smallint as system_type_id,
  types.user_type_id,
  types.digits::smallint as precision,
  0::smallint as scale,
  coalesce(sequences.last, sequences.start)::bigint as current_value,
  sequences.last::bigint as last_used_value,
  sequences.last is not distinct from case when sequences.increment > 0 then sequences.most else sequences.least end
    and not sequences.cycles as is_exhausted
from sys.shown_objects(null, '{SO}') as objects
join sys.every_stored_sequence as sequences on sequences.oid = objects.object_id::oid
cross join lateral sys.described_type(sequences.type, -1) as types;
comment on view sys.sequences is 'SQL Server: Catalog Views, sys.sequences';

create view sys.system_views as
select
  relname::sys.sysname as name,
  oid::integer as object_id,
  4 as schema_id, 'V'::character(2) as type, 'VIEW'::sys.sysname as type_desc
from pg_catalog.pg_class
where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'sys')
  and relkind = 'v'
  and relname not like 'every\_%';
comment on view sys.system_views is 'SQL Server: Catalog Views, sys.system_views';

create view sys.sysobjects as
select
  objects.name,
  objects.object_id as id,
  case objects.type when 'D' then 'D' else objects.type end::character(2) as xtype,
  objects.schema_id::smallint as uid,
  0::smallint as info, 0 as status, 0 as base_schema_ver, 0 as replinfo,
  objects.parent_object_id as parent_obj,
  objects.create_date as crdate,
  0::smallint as ftcatid, 0 as schema_ver, 0 as stats_schema_ver,
  case objects.type when 'PK' then 'K' when 'UQ' then 'K' when 'F' then 'RI' else objects.type end::character(2)
    as type,
  0::smallint as userstat, 0::smallint as sysstat, 0::smallint as indexdel,
  objects.modify_date as refdate,
  0 as version, 0 as deltrig, 0 as instrig, 0 as updtrig, 0 as seltrig, 0 as category, 0::smallint as cache,
  'dbo'::sys.sysname as loginame
from sys.objects as objects;
comment on view sys.sysobjects is
'SQL Server: System Compatibility Views, sys.sysobjects; type (U, V, P, TR, K, RI, D) and loginame as in sysobjects of ASE';
