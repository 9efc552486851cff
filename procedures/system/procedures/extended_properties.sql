-- Extended properties are comments of PostgreSQL: the description of an object is its comment, where this is no T-SQL text or
-- declaration; all others follow as JSON in the comment's last line.

create function sys.properties(comment text, is_text boolean default false) returns table (name text, value text)
language sql immutable
as $$
  select each.key, each.value from jsonb_each_text(sys.comment_properties(comment)) as each
  union all
  select 'MS_Description', sys.comment_base(comment)
  where not is_text and sys.comment_base(comment) <> '' and sys.comment_base(comment) not like 'T-SQL %'
    and not sys.comment_properties(comment) ? 'MS_Description'
$$;
comment on function sys.properties(text, boolean) is
'The properties in a comment. is_text: the comment is the T-SQL text of the object, not a description.';

create function sys.with_property(comment text, name text, value text, is_text boolean) returns text
language plpgsql immutable
as $$
declare
  base text := sys.comment_base(comment);
  properties jsonb := sys.comment_properties(comment) - name;
  is_free constant boolean := not is_text and coalesce(base, '') not like 'T-SQL %';
begin
  if is_free and name = 'MS_Description' then
    base := null;
  end if;
  if value is not null and name = 'MS_Description' and is_free and value <> '' and value not like 'T-SQL %' then
    base := value;
  elsif value is not null then
    properties := properties || jsonb_build_object(name, value);
  end if;
  return nullif(concat(base, case when properties <> '{}' then E'\n-- extended properties: ' || properties::text end), '');
end
$$;
comment on function sys.with_property(text, text, text, boolean) is
'A comment with this value of a property in place of an earlier one; without the property if the value is null.';

-- The objects that have properties: class and numbers as in sys.extended_properties, levels 1 and 2 as their procedures name
-- them, the arguments of COMMENT ON, and the comment.
create view sys.every_property_owner as
select owners.*, comments.description as comment
from (
  select
    0 as class, 0::oid as major, 0 as minor, 'dbo' as schema,
    null as kind1, null::text as name1, null as kind2, null::text as name2,
    format('schema %I', nspname) as target, false as is_text, 'pg_catalog.pg_namespace'::regclass as catalogue, oid as object
  from pg_catalog.pg_namespace
  where nspname = sys.current_database()
  union all
  select
    1, relations.oid, 0, relations.schema,
    case relations.type when 'V' then 'VIEW' else 'TABLE' end, relations.name, null, null,
    format('%s %s', case classes.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table'
      else 'table' end, relations.oid::regclass),
    false, 'pg_catalog.pg_class'::regclass, relations.oid
  from sys.every_relation as relations
  join pg_catalog.pg_class as classes on classes.oid = relations.oid
  union all
  select
    1, columns.relation, columns.number, columns.table_schema,
    case columns.table_type when 'V' then 'VIEW' else 'TABLE' end, columns.table_name, 'COLUMN', columns.name,
    format('column %s.%I', columns.relation::regclass, columns.stored_name), false, 'pg_catalog.pg_class'::regclass, columns.relation
  from sys.every_column as columns
  union all
  select
    1, procedures.oid, 0, procedures.shown_schema,
    case procedures.type when 'P' then 'PROCEDURE' else 'FUNCTION' end, procedures.name, null, null,
    format('routine %s', procedures.oid::regprocedure), true, 'pg_catalog.pg_proc'::regclass, procedures.oid
  from sys.every_procedure as procedures
  where procedures.namespace = any (array(select schemas.oid from sys.every_schema as schemas))
  union all
  select
    1, constraints.oid, 0, relations.schema, 'TABLE', relations.name, 'CONSTRAINT', constraints.name,
    format('constraint %I on %s', held.conname, relations.oid::regclass),
    false, 'pg_catalog.pg_constraint'::regclass, constraints.oid
  from sys.every_constraint as constraints
  join sys.every_relation as relations on relations.oid = constraints.relation
  join pg_catalog.pg_constraint as held on held.oid = constraints.oid
  union all
  select
    1, triggers.oid, 0, relations.schema, 'TABLE', relations.name, 'TRIGGER', triggers.name,
    format('function %s', triggers.oid::regprocedure), true, 'pg_catalog.pg_proc'::regclass, triggers.oid
  from sys.every_trigger as triggers
  join sys.every_relation as relations on relations.oid = triggers.relation
  union all
  select
    7, indexes.relation, indexes.number, relations.schema, 'TABLE', relations.name, 'INDEX', indexes.name,
    format('index %s', indexes.oid::regclass), false, 'pg_catalog.pg_class'::regclass, indexes.oid
  from sys.every_index as indexes
  join sys.every_relation as relations on relations.oid = indexes.relation
) as owners
left join pg_catalog.pg_description as comments
  on comments.objoid = owners.object and comments.classoid = owners.catalogue
  and comments.objsubid = case owners.class when 1 then owners.minor else 0 end;

create view sys.extended_properties as
select
  owners.class::smallint as class,
  case owners.class when 0 then 'DATABASE' when 7 then 'INDEX' else 'OBJECT_OR_COLUMN' end::sys.sysname as class_desc,
  owners.major::integer as major_id,
  owners.minor::integer as minor_id,
  properties.name::sys.sysname as name,
  properties.value
from sys.every_property_owner as owners
cross join lateral sys.properties(owners.comment, owners.is_text) as properties
where (properties.name <> 'MS_Description' or coalesce(owners.kind1, '') not in ('TABLE', 'VIEW') or owners.kind2 <> 'COLUMN')
  -- most comments are texts and declarations
  and (owners.comment like E'%\n-- extended properties: {%' or not owners.is_text and owners.comment not like 'T-SQL %')
union all
-- also descriptions of tables and columns in the facility file
select
  1, 'OBJECT_OR_COLUMN', relations.oid::integer, descriptions.number, 'MS_Description', descriptions.description
from sys.every_relation as relations
join sys.every_description as descriptions on descriptions.relation = relations.oid;
comment on view sys.extended_properties is
'SQL Server: Catalog Views, sys.extended_properties: those of sp_addextendedproperty, the facility file and COMMENT ON';

create function sys.enter_schema(name text) returns text
language sql
as $$
  select case
    when name is null or lower(name) in ('dbo', lower(sys.db_name()), lower(current_user))
      or exists (select from sys.every_schema as schemas where schemas.name = lower(enter_schema.name)) then sys.enter(null)
    when exists (select from sys.every_database as databases where databases.name = lower(enter_schema.name))
      then sys.enter(lower(name))
  end
$$;
comment on function sys.enter_schema(text) is
'As sys.enter, for the name of a schema: one of the current database, its user, or another database. Null: there is none.';

create function sys.entered_schema(name text) returns text
language sql stable
as $$
  select coalesce((select schemas.name from sys.every_schema as schemas where schemas.name = lower(entered_schema.name)), 'dbo')
$$;
comment on function sys.entered_schema(text) is 'The schema that sys.enter_schema has found, in the database that it has entered.';

create function sys.list_properties(text, text, text, text, text, text, text)
returns table (objtype sys.sysname, objname sys.sysname, name sys.sysname, value text)
language plpgsql stable
as $$
declare
  before constant text := sys.enter_schema($3);
begin
  if before is null then
    return;
  end if;
  return query
  select
    coalesce(owners.kind2, owners.kind1)::sys.sysname,
    coalesce(owners.name2, owners.name1)::sys.sysname,
    listed.name::sys.sysname,
    listed.value
  from sys.every_property_owner as owners
  join sys.extended_properties as listed
    on (listed.class, listed.major_id::oid, listed.minor_id) = (owners.class, owners.major, owners.minor)
  where sys.is_same_name(listed.name, coalesce($1, listed.name))
    and owners.schema = sys.entered_schema($3)
    and case
      when $2 is null then owners.class = 0
      when $4 is null then false
      when $6 is null then owners.kind2 is null and owners.kind1 = upper($4)
        and sys.is_same_name(owners.name1, coalesce($5, owners.name1))
      else owners.kind2 = upper($6) and owners.kind1 = upper($4) and sys.is_same_name(owners.name1, $5)
        and sys.is_same_name(owners.name2, coalesce($7, owners.name2))
    end;
  perform sys.leave(before);
end
$$;

create function sys.fn_listextendedproperty(
  name text default null, level0type text default null, level0name text default null, level1type text default null,
  level1name text default null, level2type text default null, level2name text default null
) returns table (objtype sys.sysname, objname sys.sysname, name sys.sysname, value text)
language sql stable
as $$ select * from sys.list_properties($1, $2, $3, $4, $5, $6, $7) $$;
comment on function sys.fn_listextendedproperty(text, text, text, text, text, text, text) is
'SQL Server: sys.fn_listextendedproperty';

create function sys.change_property(
  procedure text, property text, value text, level0type text, level0name text, level1type text, level1name text,
  level2type text, level2name text
) returns integer
language plpgsql
as $$
declare
  shown constant text := coalesce(concat_ws('.', level0name, level1name, level2name), 'object specified');
  before constant text := sys.enter_schema(case when upper(level0type) in ('SCHEMA', 'USER') then level0name end);
  owner record;
  is_there boolean;
begin
  if property is null or num_nulls(level0type, level0name) = 1 or num_nulls(level1type, level1name) = 1
    or num_nulls(level2type, level2name) = 1 or level0type is null and level1type is not null
    or level1type is null and level2type is not null then
    perform tsql.raise(15600, 15, 1, format('An invalid parameter or option was specified for procedure ''sys.%s''.', procedure));
  end if;
  if upper(level0type) in ('SCHEMA', 'USER') and level1type is null then
    perform tsql.raise(15600, 15, 1, format('%s of a schema is not supported: a database is a schema here, and has properties '
      'without a level.', procedure));
  end if;
  select * into owner
  from sys.every_property_owner as owners
  where level0type is null and owners.class = 0
    or upper(level0type) in ('SCHEMA', 'USER') and before is not null and owners.schema = sys.entered_schema(level0name)
      and (owners.kind1, coalesce(owners.kind2, '')) = (upper(level1type), coalesce(upper(level2type), ''))
      and sys.is_same_name(owners.name1, level1name)
      and (level2name is null or sys.is_same_name(owners.name2, level2name));
  if owner is null then
    perform tsql.raise(15135, 16, 8, format('Object is invalid. Extended properties are not permitted on ''%s'', or the object '
      'does not exist.', shown));
  end if;
  is_there := exists (select from sys.properties(owner.comment, owner.is_text) as properties where properties.name = property);
  if procedure = 'sp_addextendedproperty' and is_there then
    perform tsql.raise(15233, 16, 1, format('Property cannot be added. Property ''%s'' already exists for ''%s''.', property, shown));
  elsif procedure <> 'sp_addextendedproperty' and not is_there then
    perform tsql.raise(15217, 16, 2, format('Property cannot be updated or deleted. Property ''%s'' does not exist for ''%s''.',
      property, shown));
  end if;
  begin
    execute format('comment on %s is %L', owner.target, sys.with_property(owner.comment, property,
      case when procedure <> 'sp_dropextendedproperty' then coalesce(value, '') end, owner.is_text));
  exception when insufficient_privilege then
    perform tsql.raise(15135, 16, 8, format('Object is invalid. Extended properties are not permitted on ''%s'', or the object '
      'does not exist.', shown));
  end;
  perform sys.leave(before);
  return 0;
end
$$;
comment on function sys.change_property(text, text, text, text, text, text, text, text, text) is
$$Adds, updates or drops an extended property, as the procedure of SQL Server that is named. Runs with the caller's rights.
Errors: no such object, or the caller does not own it (15135); it has the property already (15233), or lacks it (15217); arguments that
do not fit together (15600).$$;

create function sys.sp_addextendedproperty(
  name text, value text default null, level0type text default null, level0name text default null,
  level1type text default null, level1name text default null, level2type text default null, level2name text default null
) returns integer
language sql
as $$ select sys.change_property('sp_addextendedproperty', $1, $2, $3, $4, $5, $6, $7, $8) $$;

create function sys.sp_updateextendedproperty(
  name text, value text default null, level0type text default null, level0name text default null,
  level1type text default null, level1name text default null, level2type text default null, level2name text default null
) returns integer
language sql
as $$ select sys.change_property('sp_updateextendedproperty', $1, $2, $3, $4, $5, $6, $7, $8) $$;

create function sys.sp_dropextendedproperty(
  name text, level0type text default null, level0name text default null,
  level1type text default null, level1name text default null, level2type text default null, level2name text default null
) returns integer
language sql
as $$ select sys.change_property('sp_dropextendedproperty', $1, null, $2, $3, $4, $5, $6, $7) $$;
