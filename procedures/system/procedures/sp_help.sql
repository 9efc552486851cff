-- As in ASE's syscolumns: the length of a text without limit is that of its pointer.
create function sys.ase_bytes(characters integer, bytes integer, ase_length integer) returns integer
language sql immutable
as $$ select case when bytes = -1 then 16 when characters > 0 then ase_length else bytes end $$;

create function sys.help(objname text, ase boolean) returns integer
language plpgsql
as $$
declare
  id integer;
  kind text;
  rows refcursor;
begin
  if objname is null then
    perform sys.announce_fitted($query$
      select
        objects.name::varchar(%s) as "Name",
        sys.schema_name(objects.schema_id)::varchar(%s) as "Owner",
        sys.kind_of(objects.type)::varchar(30) as "Object_type"
      from sys.objects as objects
      where objects.type in ('U', 'V', 'P', 'FN', 'IF', 'TF')
      order by 3 desc, 1
    $query$, null, null, 'Name', 'Owner');
    return 0;
  end if;

  if sys.object_id(objname) is null and sys.type_id(objname) is not null then
    open rows for
    select
      types.name as "Type_name",
      types.name as "Storage_type",
      types.bytes::smallint as "Length",
      nullif(types.precision, 0) as "Prec",
      case when types.precision > 0 then types.scale end as "Scale",
      'yes'::sys.sysname as "Nullable"
    from sys.every_system_type as types
    where types.user_type_id = sys.type_id(objname)
    union all
    select
      users.name, types.name, types.bytes::smallint, nullif(types.digits, 0),
      case when types.digits > 0 then types.scale end, case when users.is_nullable then 'yes' else 'no' end::sys.sysname
    from sys.every_user_type as users
    cross join lateral sys.described_type('pg_catalog.text'::regtype, -1, users.declared) as types
    where users.oid::integer = sys.type_id(objname);
    perform sys.announce(rows, false);
    return 0;
  end if;

  id := sys.demand_object(objname);
  select objects.type into kind from sys.every_object as objects where objects.oid = id::oid;
  perform sys.announce_fitted($query$
    select
      objects.name::varchar(%s) as "Name",
      objects.schema::varchar(%s) as "Owner",
      sys.kind_of(objects.type)::varchar(30) as "Type",
      null::timestamp as "Created_datetime"
    from sys.every_object as objects
    where objects.oid = $2::integer::oid
  $query$, null, id, 'Name', 'Owner');

  if kind in ('U', 'V') then
    perform sys.announce_fitted($query$
    select
      columns.name::varchar(%s) as "Column_name",
      coalesce(columns.user_type, case when $1::boolean then types.ase_name else types.name end)::varchar(%s) as "Type",
      case when columns.is_computed then 'yes' else 'no' end::varchar(3) as "Computed",
      case when $1::boolean then sys.ase_bytes(types.characters, types.bytes, types.ase_length) else types.bytes end as "Length",
      case when types.characters is null then nullif(types.digits, 0) end as "Prec",
      case when types.radix = 10 or types.sub is not null then types.scale end as "Scale",
      case when columns.is_nullable then 'yes' else 'no' end::varchar(3) as "Nullable"
    from sys.every_column as columns
    cross join lateral sys.described_type(columns.type, columns.typmod, columns.declared) as types
    where columns.relation = $2::integer::oid
    order by columns.number
    $query$, to_jsonb(ase), id, 'Column_name', 'Type');
    if exists (select from sys.every_index as indexes where indexes.relation = id::oid) then
      perform sys.announce_fitted($query$
        select index_name::varchar(%s), index_description::varchar(%s), index_keys::varchar(%s)
        from sys.sp_helpindex($1 #>> '{}')
      $query$, to_jsonb(objname), null, 'index_name', 'index_description', 'index_keys');
    end if;
    if exists (select from sys.every_constraint as constraints where constraints.relation = id::oid) then
      perform sys.announce_fitted($query$
        select
          case constraints.type when 'PK' then 'PRIMARY KEY' when 'UQ' then 'UNIQUE' when 'F' then 'FOREIGN KEY'
            else 'CHECK' end::varchar(15) as constraint_type,
          constraints.name::varchar(%s) as constraint_name,
          sys.shown_expression(pg_catalog.pg_get_constraintdef(constraints.oid))::varchar(%s) as constraint_keys
        from sys.every_constraint as constraints
        where constraints.relation = $2::integer::oid
        order by 1, 2
      $query$, null, id, 'constraint_name', 'constraint_keys');
    end if;
  elsif kind in ('P', 'FN', 'IF', 'TF') then
    perform sys.announce_fitted($query$
    select
      ('@' || parameters.name)::varchar(%s) as "Parameter_name",
      case when $1::boolean then types.ase_name else types.name end::varchar(%s) as "Type",
      case when $1::boolean then sys.ase_bytes(types.characters, types.bytes, types.ase_length) else types.bytes end as "Length",
      case when types.characters is null then nullif(types.digits, 0) end as "Prec",
      case when types.radix = 10 or types.sub is not null then types.scale end as "Scale",
      parameters.position as "Param_order",
      case when parameters.is_output then 'yes' else 'no' end::varchar(3) as "Output"
    from sys.every_stored_parameter as parameters
    cross join lateral sys.described_type(parameters.type, parameters.typmod, parameters.declared) as types
    where parameters.procedure = $2::integer::oid
    order by parameters.position
    $query$, to_jsonb(ase), id, 'Parameter_name', 'Type');
  end if;
  return 0;
end
$$;

create function sys.kind_of(type text) returns text
language sql immutable
as $$
  select case trim(type)
    when 'U' then 'user table' when 'V' then 'view' when 'P' then 'stored procedure'
    when 'FN' then 'scalar function' when 'IF' then 'inline function' when 'TF' then 'table function'
    when 'PK' then 'primary key cns' when 'UQ' then 'unique cns' when 'F' then 'foreign key cns'
    when 'C' then 'check cns' when 'D' then 'default (maybe cns)'
  end
$$;

create function sys.sp_help(objname text default null) returns integer
language sql
as $$ select sys.help(objname, false) $$;
comment on function sys.sp_help(text) is
$$SQL Server: sp_help, without filegroups and row GUIDs. Without a name the objects of the current database; of a table
its columns, indexes, constraints; of a procedure its parameters; of a type its definition.$$;

create function sybsystemprocs.sp_help(objname text default null) returns integer
language sql
as $$ select sys.help(objname, true) $$;
comment on function sybsystemprocs.sp_help(text) is 'The same with the types that TDS 5.0 has.';
