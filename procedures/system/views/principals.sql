-- Users: PostgreSQL's roles, and dbo, the owner of everything in a database.
create view sys.database_principals as
select
  listed.name, listed.principal_id, listed.type, listed.type_desc, 'dbo'::sys.sysname as default_schema_name,
  null::timestamp as create_date, null::timestamp as modify_date, null::integer as owning_principal_id,
  pg_catalog.int4send(listed.principal_id) as sid,
  listed.is_fixed_role
from (
  select
    'public'::sys.sysname as name, 0 as principal_id, 'R'::character(1) as type,
    'DATABASE_ROLE'::sys.sysname as type_desc, false as is_fixed_role
  union all
  select 'dbo', 1, 'S', 'SQL_USER', false
  union all
  select
    rolname,
    oid::integer,
    case when rolcanlogin then 'S' else 'R' end,
    case when rolcanlogin then 'SQL_USER' else 'DATABASE_ROLE' end,
    false
  from pg_catalog.pg_roles
  where rolname not like 'pg\_%'
) as listed;
comment on view sys.database_principals is 'SQL Server: Catalog Views, sys.database_principals';

create view sys.server_principals as
select
  rolname::sys.sysname as name,
  oid::integer as principal_id,
  pg_catalog.int4send(oid::integer) as sid,
  case when rolcanlogin then 'S' else 'R' end::character(1) as type,
  case when rolcanlogin then 'SQL_LOGIN' else 'SERVER_ROLE' end::sys.sysname as type_desc,
  not rolcanlogin as is_disabled,
  null::timestamp as create_date, null::timestamp as modify_date,
  sys.current_database()::sys.sysname as default_database_name,
  'us_english'::sys.sysname as default_language_name
from pg_catalog.pg_roles
where rolname not like 'pg\_%';
comment on view sys.server_principals is 'SQL Server: Catalog Views, sys.server_principals';

create view sys.sysusers as
select
  principal_id as uid,
  0::smallint as status, name, null::bytea as sid, null::timestamp as createdate, null::timestamp as updatedate,
  0 as gid,
  principal_id as suid,
  true as hasdbaccess,
  (type = 'S') as islogin,
  (type = 'S') as issqluser,
  (type = 'R') as issqlrole
from sys.database_principals;
comment on view sys.sysusers is
'SQL Server: System Compatibility Views, sys.sysusers; suid as in sysusers of ASE. Numbers are those of PostgreSQL''s roles.';

create view sys.syslogins as
select
  principal_id as suid,
  name,
  name as loginname,
  default_database_name as dbname,
  default_language_name as language,
  0::smallint as status
from sys.server_principals
where type = 'S';
comment on view sys.syslogins is 'SQL Server and ASE: syslogins';

-- Members of roles.
create view sys.database_role_members as
select
  members.roleid::integer as role_principal_id,
  members.member::integer as member_principal_id
from pg_catalog.pg_auth_members as members
join sys.database_principals as roles on roles.principal_id = members.roleid::integer
join sys.database_principals as users on users.principal_id = members.member::integer;
comment on view sys.database_role_members is 'SQL Server: Catalog Views, sys.database_role_members';
