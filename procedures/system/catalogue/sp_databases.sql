create function sys.sp_databases()
returns table ("DATABASE_NAME" sys.sysname, "DATABASE_SIZE" integer, "REMARKS" sys.remarks)
language sql stable
as $$
  select
    databases.name::sys.sysname,
    least((sys.size_of(databases.oid) + 1023) / 1024, 2147483647)::integer,
    (select sys.remark(property.value) from sys.properties(pg_catalog.obj_description(databases.oid, 'pg_namespace')) as property
      where property.name = 'MS_Description')
  from sys.every_database as databases
  order by 1
$$;
comment on function sys.sp_databases() is
'SQL Server and ASE: sp_databases. A database is a schema of PostgreSQL; its size is that of its tables and indexes, in KB.';

create function sys.sp_server_info("ATTRIBUTE_ID" integer default null)
returns table (attribute_id integer, attribute_name sys.sysname, attribute_value sys.line)
language sql stable
as $$
  select listed.id, listed.name::sys.sysname, listed.value::sys.line
  from (values
    (1, 'DBMS_NAME', 'ringlog'),
    (2, 'DBMS_VER', 'ringlog on PostgreSQL ' || current_setting('server_version')),
    (10, 'OWNER_TERM', 'owner'),
    (11, 'TABLE_TERM', 'table'),
    (12, 'MAX_OWNER_NAME_LENGTH', '63'),
    (13, 'TABLE_LENGTH', '63'),
    (14, 'MAX_QUAL_LENGTH', '63'),
    (15, 'COLUMN_LENGTH', '63'),
    (16, 'IDENTIFIER_CASE', 'MIXED'),
    (17, 'TX_ISOLATION', '2'),
    (18, 'COLLATION_SEQ', 'charset=utf8 sort_order=bin'),
    (19, 'SAVEPOINT_SUPPORT', 'Y'),
    (20, 'MULTI_RESULT_SETS', 'Y'),
    (22, 'ACCESSIBLE_TABLES', 'Y'),
    (100, 'USERID_LENGTH', '63'),
    (101, 'QUALIFIER_TERM', 'database'),
    (102, 'NAMED_TRANSACTIONS', 'Y'),
    (103, 'SPROC_AS_LANGUAGE', 'Y'),
    (104, 'ACCESSIBLE_SPROC', 'Y'),
    (105, 'MAX_INDEX_COLS', '32'),
    (106, 'RENAME_TABLE', 'N'),
    (107, 'RENAME_COLUMN', 'N'),
    (108, 'DROP_COLUMN', 'N'),
    (109, 'INCREASE_COLUMN_LENGTH', 'N'),
    (110, 'DDL_IN_TRANSACTION', 'Y'),
    (111, 'DESCENDING_INDEXES', 'Y'),
    (112, 'SP_RENAME', 'N'),
    (113, 'REMOTE_SPROC', 'N'),
    (500, 'SYS_SPROC_VERSION', '12.00.2000')
  ) as listed (id, name, value)
  where $1 is null or listed.id = $1
  order by 1
$$;
comment on function sys.sp_server_info(integer) is 'SQL Server and ASE: sp_server_info.';
