-- The texts of procedures, functions, triggers, views, rules, defaults and checks.
create function sys.source_in(body text, comment text) returns text
language sql immutable
as $$
  select case when body like '%-- compiled from T-SQL, ' || md5(sys.comment_base(comment)) || '%' then sys.comment_base(comment) end
$$;
comment on function sys.source_in(text, text) is
'The T-SQL of a procedure by its body and its comment; null for one of another origin, or if either was changed since.';

-- schema tsql is installed after this one
set local check_function_bodies = off;
create function sys.definition_of(object oid, type text) returns table (definition text)
language sql stable
as $$
  -- alone in a subquery: PostgreSQL reads the text only of a row that a query returns, and only if it returns this column
  select case type
    when 'V' then tsql.view_source(object)
    when 'D' then (select defaults.definition from sys.every_stored_default as defaults where defaults.oid = object)
    when 'C' then sys.check_text(object)
    else (
      select case
        -- a rule or default, which is bound to columns
        when type = 'R' then comments.description
        -- T-SQL as its author wrote it, or the definition in PostgreSQL
        else coalesce(sys.source_in(routines.prosrc, comments.description), pg_catalog.pg_get_functiondef(routines.oid))
      end
      from pg_catalog.pg_proc as routines
      left join pg_catalog.pg_description as comments
        on comments.objoid = routines.oid and comments.classoid = 'pg_catalog.pg_proc'::regclass and comments.objsubid = 0
      where routines.oid = object
    )
  end
$$;

set local check_function_bodies = on;
comment on function sys.definition_of(oid, text) is
$$The text of an object by its number and type ('R' also for a default that is an object of its own); null for a view that was
not made in T-SQL.$$;

create function sys.object_definition(id integer) returns text
language sql stable
as $$
  select source.definition
  from (
    select oid, 'P' as type from sys.every_numbered_procedure where oid = id::oid
    union all
    select oid, 'TR' from sys.every_trigger where oid = id::oid
    union all
    select oid, 'R' from sys.every_bindable where oid = id::oid
    union all
    select oid, 'V' from sys.every_relation where oid = id::oid and type = 'V'
    union all
    select oid, 'D' from sys.every_default where oid = id::oid
    union all
    select oid, 'C' from sys.every_constraint where oid = id::oid and type = 'C'
  ) as listed
  cross join lateral sys.definition_of(listed.oid, listed.type) as source
  limit 1
$$;
comment on function sys.object_definition(integer) is
'SQL Server: OBJECT_DEFINITION, the text of a procedure, view, trigger, default or check; null for anything else, and for a view '
'that was not made in T-SQL';

create view sys.sql_modules as
select
  objects.object_id, source.definition, true as uses_ansi_nulls, true as uses_quoted_identifier,
  false as is_schema_bound, false as uses_database_collation, false as is_recompiled, false as null_on_null_input,
  null::integer as execute_as_principal_id
from sys.shown_objects(null, '{P,FN,IF,TF,V,TR,R,D}') as objects
cross join lateral sys.definition_of(objects.object_id::oid, case objects.type when 'D' then 'R' else objects.type end) as source
where objects.type <> 'D' or objects.parent_object_id = 0;
comment on view sys.sql_modules is 'SQL Server: Catalog Views, sys.sql_modules';

create view sys.numbered_procedures as
select
  procedures.object_id,
  procedures.number as procedure_number,
  source.definition
from sys.shown_routines(null) as procedures
cross join lateral sys.definition_of(procedures.oid, 'P') as source
where procedures.number > 1 and procedures.object_id is not null;
comment on view sys.numbered_procedures is 'SQL Server: Catalog Views, sys.numbered_procedures: those of a group but the first';

create view sys.all_sql_modules as
select * from sys.sql_modules;

create view sys.system_sql_modules as
select * from sys.sql_modules where false;
comment on view sys.system_sql_modules is 'SQL Server: Catalog Views, sys.system_sql_modules: system procedures have no text';

create view sys.syscomments as
select
  modules.id,
  modules.group_number as number,
  chunks.number::smallint as colid,
  0::smallint as status, null::bytea as ctext, 0::smallint as texttype, 0::smallint as language, false as encrypted,
  false as compressed,
  pg_catalog.substr(modules.text, 1 + 255 * (chunks.number - 1), 255)::sys.line as text
from (
  select
    objects.object_id as id,
    (objects.type = 'P')::integer::smallint as group_number,
    source.definition as text
  from sys.shown_objects(null, '{P,FN,IF,TF,V,TR,D,C,R}') as objects
  cross join lateral sys.definition_of(
    objects.object_id::oid, case when objects.type = 'D' and objects.parent_object_id = 0 then 'R' else objects.type end
  ) as source
  union all
  select object_id, procedure_number, definition from sys.numbered_procedures
) as modules
cross join lateral generate_series(1, (pg_catalog.length(modules.text) + 254) / 255) as chunks (number);
comment on view sys.syscomments is
'SQL Server: System Compatibility Views, sys.syscomments; in pieces of 255 characters as in syscomments of ASE';
