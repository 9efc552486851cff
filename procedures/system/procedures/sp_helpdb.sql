create function sys.sp_helpdb(dbname text default null) returns integer
language plpgsql
as $$
declare
  rows refcursor;
begin
  if not exists (select from sys.every_named_database as databases where databases.name = coalesce(lower(dbname), 'master')) then
    perform tsql.raise(15010, 16, 1, format('The database ''%s'' does not exist. Supply a valid database name. To see available '
      'databases, use sys.databases.', dbname));
  end if;
  open rows for
  select
    databases.name::sys.sysname as name,
    lpad(round(sys.size_of(databases.oid) / 1048576.0, 2) || ' MB', 13)::character varying(13) as db_size,
    pg_catalog.pg_get_userbyid(databases.owner)::sys.sysname as owner,
    databases.number::smallint as dbid,
    null::character varying(11) as created,
    concat_ws(', ', 'Status=ONLINE', 'Updateability=READ_WRITE', 'UserAccess=MULTI_USER', 'Recovery=FULL',
      'Collation=' || sys.collation_of_database(databases.name))::character varying(600) as status,
    120::smallint as compatibility_level
  from sys.every_database as databases
  where dbname is null or databases.name = lower(dbname)
  order by 1;
  perform sys.announce(rows);
  if dbname is not null then
    rows := null;
    open rows for
    select
      files.name, files.file_id::smallint as fileid, files.physical_name as filename, 'PRIMARY'::sys.sysname as filegroup,
      sys.kilobytes(files.size::numeric * 8192)::character varying(18) as size, 'Unlimited'::character varying(18) as maxsize,
      '0 KB'::character varying(18) as growth, 'data only'::character varying(9) as usage
    from sys.database_files(dbname) as files;
    perform sys.announce(rows);
  end if;
  return 0;
end
$$;
comment on function sys.sp_helpdb(text) is
'SQL Server: sp_helpdb, name, size, owner and number of all databases or of one, and its files';
