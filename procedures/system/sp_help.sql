create function sys.help(objname text, ase boolean)
returns integer
language plpgsql
as $$
declare
  id integer;
  kind text;
  rows refcursor;
begin
  if objname is null then
    open rows for
    select
      objects.name as "Name",
      'dbo'::sys.sysname as "Owner",
      sys.kind_of(objects.type)::sys.sysname as "Object_type"
    from sys.objects as objects
    where objects.type in ('U', 'V', 'P')
    order by 3 desc, 1;
    perform sys.tell(rows);
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
    from sys.system_types as types
    where types.user_type_id = sys.type_id(objname);
    perform sys.tell(rows);
    return 0;
  end if;

  id := sys.demand_object(objname);
  select objects.type into kind from sys.objects as objects where objects.object_id = id;
  open rows for
  select
    objects.name as "Name",
    'dbo'::sys.sysname as "Owner",
    sys.kind_of(objects.type)::sys.sysname as "Type",
    objects.create_date as "Created_datetime"
  from sys.objects as objects
  where objects.object_id = id;
  perform sys.tell(rows);

  if kind in ('U', 'V') then
    rows := null;
    open rows for
    select
      columns.name::sys.sysname as "Column_name",
      case when ase then types.ase_name else types.name end as "Type",
      case when columns.is_computed then 'yes' else 'no' end::sys.sysname as "Computed",
      case when ase then types.ase_length else types.bytes end as "Length",
      case when types.characters is null then nullif(types.digits, 0) end as "Prec",
      case when types.radix = 10 or types.sub is not null then types.scale end as "Scale",
      case when columns.is_nullable then 'yes' else 'no' end::sys.sysname as "Nullable"
    from sys.every_column as columns
    cross join lateral sys.described_type(columns.type, columns.typmod) as types
    where columns.relation = id::oid
    order by columns.number;
    perform sys.tell(rows);
    if exists (select from sys.every_index as indexes where indexes.relation = id::oid) then
      rows := null;
      open rows for select * from sys.sp_helpindex(objname);
      perform sys.tell(rows);
    end if;
    if exists (select from sys.every_constraint as constraints where constraints.relation = id::oid) then
      rows := null;
      open rows for
      select
        case constraints.type when 'PK' then 'PRIMARY KEY' when 'UQ' then 'UNIQUE' when 'F' then 'FOREIGN KEY'
          else 'CHECK' end::sys.sysname as constraint_type,
        constraints.name::sys.sysname as constraint_name,
        pg_catalog.pg_get_constraintdef(constraints.oid)::sys.list as constraint_keys
      from sys.every_constraint as constraints
      where constraints.relation = id::oid
      order by 1, 2;
      perform sys.tell(rows);
    end if;
  elsif kind = 'P' then
    rows := null;
    open rows for
    select
      ('@' || parameters.name)::sys.sysname as "Parameter_name",
      case when ase then types.ase_name else types.name end as "Type",
      case when ase then types.ase_length else types.bytes end as "Length",
      case when types.characters is null then nullif(types.digits, 0) end as "Prec",
      case when types.radix = 10 or types.sub is not null then types.scale end as "Scale",
      parameters.place as "Param_order",
      case when parameters.is_output then 'yes' else 'no' end::sys.sysname as "Output"
    from sys.every_parameter as parameters
    cross join lateral sys.described_type(parameters.type, parameters.typmod) as types
    where parameters.procedure = id::oid
    order by parameters.place;
    perform sys.tell(rows);
  end if;
  return 0;
end
$$;

create function sys.kind_of(type text)
returns text
language sql
immutable
as $$
  select case trim(type)
    when 'U' then 'user table' when 'V' then 'view' when 'P' then 'stored procedure'
    when 'PK' then 'primary key cns' when 'UQ' then 'unique cns' when 'F' then 'foreign key cns'
    when 'C' then 'check cns' when 'D' then 'default (maybe cns)'
  end
$$;

create function sys.sp_help(objname text default null)
returns integer
language sql
as $$
  select sys.help(objname, false)
$$;

comment on function sys.sp_help(text) is
$$SQL Server: sp_help, without filegroups and row GUIDs. Without a name the objects of the current database; of a table
its columns, indexes, constraints; of a procedure its parameters; of a type what it is.$$;

create function sybsystemprocs.sp_help(objname text default null)
returns integer
language sql
as $$
  select sys.help(objname, true)
$$;

comment on function sybsystemprocs.sp_help(text) is 'The same with the types that TDS 5.0 has.';
