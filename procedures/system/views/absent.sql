-- Objects of which every SQL Server has one or none. SSMS, DBeaver and their like read these views as they open a tree.
create view sys.data_spaces as
select
  'PRIMARY'::sys.sysname as name, 1 as data_space_id, 'FG'::character(2) as type,
  'ROWS_FILEGROUP'::sys.sysname as type_desc, true as is_default,
  false as is_system;
comment on view sys.data_spaces is 'SQL Server: Catalog Views, sys.data_spaces: that of all tables';

create view sys.filegroups as
select
  spaces.name, spaces.data_space_id, spaces.type, spaces.type_desc, spaces.is_default, spaces.is_system,
  null::uuid as filegroup_guid, null::integer as log_filegroup_id, false as is_read_only
from sys.data_spaces as spaces;
comment on view sys.filegroups is 'SQL Server: Catalog Views, sys.filegroups: that of all tables';

create view sys.database_files as
select
  1 as file_id, null::uuid as file_guid, 0::smallint as type, 'ROWS'::sys.sysname as type_desc, 1 as data_space_id,
  sys.db_name() as name,
  null::character varying(260) as physical_name, 0::smallint as state, 'ONLINE'::sys.sysname as state_desc,
  (sys.size_of(databases.oid) / 8192)::integer as size,
  -1 as max_size, 0 as growth, false as is_media_read_only, false as is_read_only, false as is_sparse,
  false as is_percent_growth, false as is_name_reserved
from sys.every_database as databases
where databases.name = sys.current_database();
comment on view sys.database_files is
'SQL Server: Catalog Views, sys.database_files: the files of a database''s tables as one; their size is in pages of 8,192 bytes';

create view sys.partition_schemes as
select
  spaces.name, spaces.data_space_id, spaces.type, spaces.type_desc, spaces.is_default, spaces.is_system,
  0 as function_id
from sys.data_spaces as spaces
where false;
comment on view sys.partition_schemes is 'SQL Server: Catalog Views, sys.partition_schemes: there are none';

create view sys.partition_functions as
select
  null::sys.sysname as name, null::integer as function_id, null::character(2) as type, null::sys.sysname as type_desc,
  null::integer as fanout, null::boolean as boundary_value_on_right, null::boolean as is_system,
  null::timestamp as create_date, null::timestamp as modify_date
where false;
comment on view sys.partition_functions is 'SQL Server: Catalog Views, sys.partition_functions: there are none';

create view sys.assemblies as
select
  null::sys.sysname as name, null::integer as principal_id, null::integer as assembly_id, null::sys.line as clr_name,
  null::smallint as permission_set, null::sys.sysname as permission_set_desc, null::boolean as is_visible,
  null::timestamp as create_date, null::timestamp as modify_date, null::boolean as is_user_defined
where false;
comment on view sys.assemblies is 'SQL Server: Catalog Views, sys.assemblies: there are none';

create view sys.xml_schema_collections as
select
  null::integer as xml_collection_id, null::integer as schema_id, null::integer as principal_id,
  null::sys.sysname as name, null::timestamp as create_date, null::timestamp as modify_date
where false;
comment on view sys.xml_schema_collections is
'SQL Server: Catalog Views, sys.xml_schema_collections: there are none of a user';

create view sys.servers as
select
  0 as server_id,
  sys.serverproperty('servername')::sys.sysname as name,
  'SQL Server'::sys.sysname as product, 'SQLNCLI'::sys.sysname as provider,
  sys.serverproperty('servername')::sys.line as data_source,
  null::sys.line as location, null::sys.line as provider_string, null::sys.sysname as catalog, 0 as connect_timeout,
  0 as query_timeout, false as is_linked, false as is_remote_login_enabled, false as is_rpc_out_enabled,
  false as is_data_access_enabled, false as is_collation_compatible, false as uses_remote_collation,
  null::sys.sysname as collation_name, false as lazy_schema_validation, false as is_system, false as is_publisher,
  false as is_subscriber, false as is_distributor, false as is_nonsql_subscriber,
  false as is_remote_proc_transaction_promotion_enabled,
  null::timestamp as modify_date;
comment on view sys.servers is 'SQL Server: Catalog Views, sys.servers: this server; there are no linked ones';
