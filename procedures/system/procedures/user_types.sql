-- sp_addtype and sp_droptype; rules and defaults bound to columns and user types (gateway/sql/ddl/user_types.sql).

create function sys.sp_addtype(typename text, phystype text, nulltype text default 'null', owner text default null)
returns integer
language plpgsql
as $$
declare
  parts constant text[] := regexp_match(lower(trim(phystype)), '^([a-z][a-z0-9 ]*?)\s*(\(\s*(?:max|\d+)\s*(?:,\s*\d+\s*)?\))?$');
  base constant text := coalesce((
    select known.name
    from (values
      ('bigdatetime', 'datetime2'), ('bigtime', 'time'), ('binary varying', 'varbinary'), ('char varying', 'varchar'),
      ('character', 'char'), ('character varying', 'varchar'), ('dec', 'decimal'), ('double precision', 'float'),
      ('integer', 'int'), ('national char', 'nchar'), ('national char varying', 'nvarchar'), ('national character', 'nchar'),
      ('national character varying', 'nvarchar'), ('nchar varying', 'nvarchar'), ('rowversion', 'timestamp'),
      ('unichar', 'nchar'), ('unitext', 'ntext'), ('univarchar', 'nvarchar')
    ) as known (written, name) where known.written = parts[1]
  ), parts[1]);
  arguments constant text := case
    when base in ('decimal', 'numeric') and parts[2] is null then '(18,0)'
    when base in ('decimal', 'numeric') and parts[2] not like '%,%' then regexp_replace(parts[2], '\s*\)', ',0)')
    when base in ('char', 'varchar', 'nchar', 'nvarchar', 'binary', 'varbinary') then coalesce(parts[2], '(1)')
    else parts[2]
  end;
  nullable constant text := lower(regexp_replace(trim(nulltype), '\s+', ' '));
begin
  if not exists (select from sys.every_system_type as types where types.name = base)
    and coalesce(base, '') not in ('usmallint', 'uint', 'ubigint', 'utinyint') then
    perform tsql.raise(15036, 16, 1, format('The data type ''%s'' does not exist or you do not have permission.', phystype));
  elsif coalesce(nullable, '') not in ('null', 'not null', 'nonull', 'identity') then
    perform tsql.raise(15600, 15, 1, 'An invalid parameter or option was specified for procedure ''sys.sp_addtype''.');
  end if;
  call tsql.create_type('', typename, concat(base, regexp_replace(arguments, '\s', '', 'g'), ' ',
    case nullable when 'nonull' then 'not null' else nullable end));
  raise notice 'Type added.';
  return 0;
end
$$;
comment on function sys.sp_addtype(text, text, text, text) is
$$SQL Server: sp_addtype. Makes a user type of a system type. Errors: there is no such system type (15036), the name is taken
(219).$$;

create function sybsystemprocs.sp_addtype(typename text, phystype text, nulltype text default 'not null')
returns integer
language sql
as $$ select sys.sp_addtype(typename, phystype, nulltype) $$;
comment on function sybsystemprocs.sp_addtype(text, text, text) is
'ASE: sp_addtype. Without null or not null, the type takes no nulls; `identity` is a third choice.';

create function sys.sp_droptype(typename text) returns integer
language plpgsql
as $$
begin
  if tsql.user_type(typename) is null then
    perform tsql.raise(15036, 16, 1, format('The data type ''%s'' does not exist or you do not have permission.', typename));
  elsif exists (select from tsql.columns_of_type(typename)) then
    perform tsql.raise(15180, 16, 1, 'Cannot drop. The data type is being used.');
  end if;
  call tsql.drop_type('', typename, false);
  raise notice 'Type has been dropped.';
  return 0;
end
$$;
comment on function sys.sp_droptype(text) is
'SQL Server and ASE: sp_droptype. Errors: there is no such type (15036), a column has it (15180).';

create function sys.bind(kind text, name text, objname text, futureonly text) returns void
language plpgsql
as $$
declare
  column_ constant text := sys.parsename(objname, 1);
  table_ constant text := sys.parsename(objname, 2);
  bound constant oid := case when name <> '' then tsql.bindable(kind, sys.parsename(name, 1)) end;
  unbinds constant boolean := name = '';
  type_ constant oid := case when table_ is null then tsql.user_type(column_) end;
  target record;
begin
  if not unbinds and bound is null then
    perform tsql.raise(case kind when 'rule' then 15017 else 15016 end, 16, 1, format('The %s ''%s'' does not exist.', kind, name));
  end if;
  if type_ is not null then
    call tsql.bind_type(kind, bound, type_, lower(futureonly) = 'futureonly');
    raise notice '%', format('%s %s data type.', initcap(kind), case when unbinds then 'unbound from' else 'bound to' end);
    return;
  end if;
  select columns.relation, attributes.attname, attributes.attnum, attributes.attidentity into target
  from sys.every_column as columns
  join pg_catalog.pg_attribute as attributes on attributes.attrelid = columns.relation and attributes.attnum = columns.number
  where columns.table_type = 'U' and sys.is_same_name(columns.table_name, table_) and sys.is_same_name(columns.name, column_)
    and not columns.is_computed;
  if target is null then
    perform tsql.raise(15148, 16, 1, format('The data type or table column ''%s'' does not exist or you do not have permission.',
      objname));
  end if;
  if kind = 'default' and not unbinds then
    if target.attidentity <> '' then
      perform tsql.raise(15102, 16, 1, 'Cannot bind a default to an identity column.');
    elsif exists (
      select from pg_catalog.pg_attrdef as held
      where held.adrelid = target.relation and held.adnum = target.attnum and not exists (
        select from pg_catalog.pg_depend as depending
        join pg_catalog.pg_proc as functions on functions.oid = depending.refobjid
        where depending.classid = 'pg_catalog.pg_attrdef'::regclass and depending.objid = held.oid
          and depending.refclassid = 'pg_catalog.pg_proc'::regclass and functions.prosrc like '%-- default of T-SQL'
      )
    ) then
      perform tsql.raise(15103, 16, 1, 'Cannot bind a default to a column created with or altered to have a default value.');
    end if;
  end if;
  call tsql.bind_column(kind, bound, target.relation::regclass, target.attname);
  raise notice '%', format('%s %s %s.', initcap(kind), case when unbinds then 'unbound from' else 'bound to' end,
    case when kind = 'default' and not unbinds then 'column' else 'table column' end);
end
$$;
comment on function sys.bind(text, text, text, text) is
$$Binds a rule or a default (kind) to a column ('t.c') or a user type; '' unbinds what is bound. Runs with the caller's rights.
Errors: no such rule (15017), default (15016), type or column (15148), an identity (15102) or a column with a default (15103).$$;

create function sys.sp_bindrule(rulename text, objname text, futureonly text default null)
returns integer language plpgsql as $$ begin perform sys.bind('rule', rulename, objname, futureonly); return 0; end $$;

create function sys.sp_unbindrule(objname text, futureonly text default null)
returns integer language plpgsql as $$ begin perform sys.bind('rule', '', objname, futureonly); return 0; end $$;

create function sys.sp_bindefault(defname text, objname text, futureonly text default null)
returns integer language plpgsql as $$ begin perform sys.bind('default', defname, objname, futureonly); return 0; end $$;

create function sys.sp_unbindefault(objname text, futureonly text default null)
returns integer language plpgsql as $$ begin perform sys.bind('default', '', objname, futureonly); return 0; end $$;
