-- SQL Server's property functions. An unknown property is null, as for a wrong name in SQL Server.

create function sys.serverproperty(property text) returns text
language sql stable
as $$
  select case lower(rtrim(property))
    when 'productversion' then '12.0.2000.8'
    when 'productmajorversion' then '12'
    when 'productlevel' then 'RTM'
    when 'edition' then 'ringlog'
    -- Standard
    when 'engineedition' then '2'
    when 'servername' then 'ringlog'
    when 'machinename' then 'ringlog'
    -- that of tempdb
    when 'collation' then sys.collation_of_database(sys.current_database())
    when 'processid' then pg_catalog.pg_backend_pid()::text
    when 'sqlcharsetname' then 'utf8'
    when 'licensetype' then 'DISABLED'
    else case when lower(rtrim(property)) in ('productminorversion', 'isclustered', 'ishadrenabled', 'isfulltextinstalled',
      'isintegratedsecurityonly', 'issingleuser') then '0' end
  end
$$;
comment on function sys.serverproperty(text) is
'SQL Server: SERVERPROPERTY. The version is that of @@version, by which clients choose features.';

create function sys.databasepropertyex(database text, property text) returns text
language sql stable
as $$
  select case lower(rtrim(property))
    when 'collation' then sys.collation_of_database(databases.name)
    when 'status' then 'ONLINE'
    when 'updateability' then 'READ_WRITE'
    when 'useraccess' then 'MULTI_USER'
    when 'recovery' then 'FULL'
    when 'version' then '782'
    when 'isansinullsenabled' then '1'
    when 'isquotedidentifiersenabled' then '1'
    when 'lcid' then '1033'
    else case when lower(rtrim(property)) in ('isautoclose', 'isautoshrink', 'isinstandby', 'isfulltextenabled', 'sqlsortorder',
      'comparisonstyle') then '0' end
  end
  from sys.every_database as databases
  where databases.name = database
$$;

-- The properties of the Latin1_General collations: "Windows Collation Name", LCMapString's flags of NORM_IGNORE….
create function sys.collationproperty(collation_name text, property text) returns integer
language sql immutable
as $$
  select case lower(rtrim(property))
    when 'codepage' then case when name like '%\_utf8' then 65001 else 1252 end
    when 'lcid' then 1033
    when 'comparisonstyle' then case when name ~ '_bin2?(_|$)' then 0 else
      case when name ~ '_ci_' then 1 else 0 end + case when name ~ '_ai(_|$)' then 2 else 0 end
      + case when name ~ '_ks(_|$)' then 0 else 65536 end + case when name ~ '_ws(_|$)' then 0 else 131072 end end
    when 'version' then case substring(name from '^latin1_general_(\d+)') when '100' then 2 when '140' then 3 else 0 end
  end
  from (values (lower(rtrim(collation_name)))) as lowered (name)
  where name ~ '^(sql_latin1_general_cp1|latin1_general(_100)?)_(bin2?|c[is]_a[is])(_|$)'
$$;
comment on function sys.collationproperty(text, text) is
'SQL Server: COLLATIONPROPERTY, of the Latin1_General collations; null for others';

create function sys.objectproperty(id integer, property text) returns integer
language sql stable
as $$
  select case lower(rtrim(property))
    when 'cnstisdisabled' then (
      select (not coalesce((pg_catalog.to_jsonb(held) ->> 'conenforced')::boolean, true))::integer
      from pg_catalog.pg_constraint as held where held.oid = objects.oid
    )
    when 'cnstisnottrusted' then (
      select (not held.convalidated)::integer from pg_catalog.pg_constraint as held where held.oid = objects.oid
    )
    when 'isdefault' then (objects.type = 'D' and objects.parent = 0)::integer
    when 'ownerid' then 1
    when 'schemaid' then objects.schema_id
    when 'isquotedidenton' then case when objects.type in ('U', 'C', 'D') then 1 end
    when 'tablehasprimarykey' then exists (
      select from sys.every_constraint as keys where keys.relation = objects.oid and keys.type = 'PK'
    )::integer
    when 'tablehasforeignkey' then exists (
      select from sys.every_constraint as keys where keys.relation = objects.oid and keys.type = 'F'
    )::integer
    when 'tablehasindex' then exists (
      select from sys.every_index as indexes where indexes.relation = objects.oid
    )::integer
    when 'tablehasidentity' then exists (
      select from sys.every_column as columns
      where columns.relation = objects.oid and columns.is_identity
    )::integer
    when 'tablehasclustindex' then exists (
      select from sys.every_index as indexes where indexes.relation = objects.oid and indexes.number = 1
    )::integer
    -- whether it is of these types
    else (
      select (objects.type = any (listed.types::text[]))::integer
      from (values
        ('istable', '{U}'), ('isusertable', '{U}'), ('isview', '{V}'), ('isprocedure', '{P}'), ('isconstraint', '{PK,UQ,F,C,D}'),
        ('isprimarykey', '{PK}'), ('isuniquecnst', '{UQ}'), ('isforeignkey', '{F}'), ('ischeckcnst', '{C}'),
        ('isdefaultcnst', '{D}'), ('isrule', '{R}'), ('isscalarfunction', '{FN}'), ('istablefunction', '{IF,TF}'),
        ('isinlinefunction', '{IF}'), ('istrigger', '{}'), ('issystemtable', '{}'), ('ismsshipped', '{}'), ('isencrypted', '{}')
      ) as listed (property, types)
      where listed.property = lower(rtrim($2))
    )
  end
  from sys.every_object as objects
  where objects.oid = id::oid
  limit 1
$$;
comment on function sys.objectproperty(integer, text) is 'SQL Server: OBJECTPROPERTY';

create function sys.objectpropertyex(id integer, property text) returns text
language sql stable
as $$
  select case lower(rtrim(property))
    when 'basetype' then (select objects.type from sys.every_object as objects where objects.oid = id::oid limit 1)
    else sys.objectproperty(id, property)::text
  end
$$;

create function sys.columnproperty(id integer, column_name text, property text) returns integer
-- DBeaver calls it for each column: plpgsql keeps the plans
language plpgsql stable
as $$
declare
  wanted constant text := lower(rtrim(property));
  named constant text := lower(rtrim(column_name));
  columns record;
begin
  select stored.number, stored.position, stored.type, stored.typmod, stored.declared, stored.is_computed, stored.is_identity,
    stored.is_not_null, stored.stored_name
  into columns
  from sys.every_stored_column as stored
  where stored.relation = id::oid and lower(stored.name) = named and sys.may_see(id::oid, stored.number);
  if not found then
    return null;
  elsif wanted in ('precision', 'scale', 'charmaxlen', 'usesansitrim') then
    return (
      select case wanted
        when 'precision' then coalesce(types.characters, types.digits)
        when 'scale' then case when types.radix = 10 or types.sub is not null then types.scale end
        when 'charmaxlen' then types.characters
        when 'usesansitrim' then case when types.characters is not null then 1 end
      end
      from sys.described_type(columns.type, columns.typmod, columns.declared) as types
    );
  end if;
  return case wanted
    when 'allowsnull' then sys.is_nullable(columns.is_not_null, columns.stored_name, sys.stored_in(id::oid) <> id::oid)::integer
    when 'columnid' then columns.number::integer
    when 'ordinal' then columns.position
    when 'iscomputed' then columns.is_computed::integer
    when 'isidentity' then columns.is_identity::integer
    when 'isrowguidcol' then 0
    when 'issparse' then 0
    when 'ishidden' then 0
    when 'iscolumnset' then 0
  end;
end
$$;
comment on function sys.columnproperty(integer, text, text) is 'SQL Server: COLUMNPROPERTY';

create function sys.indexproperty(id integer, index_name text, property text) returns integer
language sql stable
as $$
  select case lower(rtrim(property))
    when 'indexid' then indexes.number
    when 'isunique' then indexes.is_unique::integer
    when 'isclustered' then (indexes.number = 1)::integer
    else case when lower(rtrim(property)) in ('isdisabled', 'ishypothetical', 'isstatistics', 'isautostatistics', 'iscolumnstore',
      'isfulltextkey', 'isoptimizedforsequentialkey', 'ispadindex', 'ispagelockdisallowed',
      'isrowlockdisallowed', 'indexfillfactor') then 0 end
  end
  from sys.every_index as indexes
  where indexes.relation = id::oid and lower(indexes.name) = lower(rtrim(index_name))
$$;

create function sys.typeproperty(type text, property text) returns integer
language sql stable
as $$
  select case lower(rtrim(property))
    when 'precision' then types.odbc_precision
    when 'scale' then types.odbc_scale
    when 'allowsnull' then (types.name not in ('timestamp', 'sysname'))::integer
    when 'ownerid' then 4
  end
  from sys.every_system_type as types
  where types.name = lower(sys.parsename(type, 1))
$$;
