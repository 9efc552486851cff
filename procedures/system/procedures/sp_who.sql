create function sys.activity() returns setof pg_catalog.pg_stat_activity
language plpgsql stable rows 100
-- PostgreSQL shows a session's details to its login, but not to the role that the login has set
set role to 'none'
as $$
begin
  return query
  select sessions.*
  from pg_catalog.pg_stat_activity as sessions
  where sessions.datname = pg_catalog.current_database()
    -- the kind of other sessions is not visible
    and coalesce(sessions.backend_type, 'client backend') = 'client backend';
end
$$;

create function sys.spid_of(pid integer) returns integer
language sql stable
as $$
  -- the gateway sets application_name to the client's number, program and machine: "17 program (machine)"
  select coalesce(substring(sessions.application_name from '^(\d+) .* \(.*\)$')::integer, sessions.pid)
  from sys.activity() as sessions
  where sessions.pid = spid_of.pid
$$;
comment on function sys.spid_of(integer) is
$$@@spid of the client that a connection to PostgreSQL serves. The number of the connection itself where that is of no
TDS client, or of another login's client whose number PostgreSQL does not show.$$;

create view sys.every_session as
select
  numbered.spid,
  sessions.pid = pg_catalog.pg_backend_pid() as is_own,
  sessions.usename as login,
  coalesce(numbered.names[2], host(sessions.client_addr), '') as machine,
  coalesce(numbered.names[1], sessions.application_name, '') as program,
  sessions.state, sessions.query, sessions.backend_start, sessions.query_start, sessions.xact_start,
  (
    select coalesce(min(sys.spid_of(blocking)), 0)
    from unnest(pg_catalog.pg_blocking_pids(sessions.pid)) as blocking
  ) as blocked_by
from sys.activity() as sessions
cross join lateral (
  select
    coalesce(substring(sessions.application_name from '^(\d+) .* \(.*\)$')::integer, sessions.pid) as spid,
    regexp_match(sessions.application_name, '^\d+ (.*) \((.*)\)$') as names
) as numbered;

create function sys.sp_who("LOGINAME" text default null) returns table (
  spid integer, ecid smallint, status sys.sysname, loginame sys.sysname, hostname sys.sysname, blk sys.sysname,
  dbname sys.sysname, cmd sys.sysname, request_id integer
)
language plpgsql stable
as $$
begin
  if "LOGINAME" is not null and lower("LOGINAME") <> 'active' and "LOGINAME" !~ '^\d+$'
    and not exists (select from pg_catalog.pg_roles where rolname = "LOGINAME") then
    perform tsql.raise(15007, 16, 1, format('''%s'' is not a valid login or you do not have permission.', "LOGINAME"));
  end if;
  return query
  select
    sessions.spid, 0::smallint,
    case
      when sessions.blocked_by <> 0 then 'suspended'
      when sessions.state = 'active' then 'runnable'
      else 'sleeping'
    end::sys.sysname,
    sessions.login::sys.sysname,
    sessions.machine::sys.sysname,
    sessions.blocked_by::text::sys.sysname,
    (select sys.db_name()),
    case
      when sessions.state is null then ''
      when sessions.state = 'active' then coalesce(upper(substring(sessions.query from '^\s*(\w+)')), '')
      else 'AWAITING COMMAND'
    end::sys.sysname,
    0
  from sys.every_session as sessions
  where "LOGINAME" is null
    or lower("LOGINAME") = 'active' and sessions.state is distinct from 'idle'
    or "LOGINAME" ~ '^\d+$' and sessions.spid = "LOGINAME"::bigint
    or sessions.login = "LOGINAME"
  order by 1;
end
$$;
comment on function sys.sp_who(text) is
$$SQL Server: sp_who. The clients and others that have a connection to PostgreSQL; an idle client has none. PostgreSQL's
rules decide who sees the statements and addresses of others. For spid see sys.spid_of.$$;

create view sys.sysprocesses as
select
  sessions.spid,
  sessions.blocked_by as blocked,
  case when sessions.state = 'active' then 'runnable' else 'sleeping' end::character(30) as status,
  (select databases.number from sys.every_database as databases where databases.name = sys.current_database()) as dbid,
  roles.oid::integer as uid,
  roles.oid::integer as suid,
  sessions.backend_start::timestamp as login_time,
  sessions.query_start::timestamp as last_batch,
  (sessions.xact_start is not null)::integer as open_tran,
  sessions.login::sys.sysname as loginame,
  sessions.machine::sys.sysname as hostname,
  sessions.program::sys.sysname as program_name,
  upper(substring(sessions.query from '^\s*(\w+)'))::sys.sysname as cmd
from sys.every_session as sessions
left join pg_catalog.pg_roles as roles on roles.rolname = sessions.login;
comment on view sys.sysprocesses is 'SQL Server and ASE: sysprocesses, the connections to PostgreSQL';

create view sys.dm_exec_sessions as
select
  sessions.spid as session_id,
  sessions.backend_start::timestamp as login_time,
  sessions.machine::sys.sysname as host_name,
  sessions.program::sys.sysname as program_name,
  sessions.login::sys.sysname as login_name,
  case when sessions.state = 'active' then 'running' else 'sleeping' end::sys.sysname as status,
  case when sessions.is_own then own.isolation else 0 end::smallint as transaction_isolation_level,
  (sessions.xact_start is not null)::integer as open_transaction_count,
  true as is_user_process,
  case when sessions.is_own then 'us_english' end::sys.sysname as language,
  case when sessions.is_own then own.date_format end::sys.sysname as date_format,
  case when sessions.is_own then own.date_first end::smallint as date_first
from sys.every_session as sessions
cross join (
  select
    case pg_catalog.current_setting('transaction_isolation')
      when 'repeatable read' then 3
      when 'serializable' then 4
      else 2
    end as isolation,
    -- as the gateway sets them
    coalesce(nullif(pg_catalog.current_setting('tsql.dateformat', true), ''), 'mdy') as date_format,
    coalesce(nullif(pg_catalog.current_setting('tsql.datefirst', true), ''), '7')::integer as date_first
) as own;
comment on view sys.dm_exec_sessions is
'SQL Server: sys.dm_exec_sessions, the connections to PostgreSQL. Settings are shown for the caller''s own session: the
isolation level of others is 0 (unspecified), other settings are null.';

create view sys.dm_exec_connections as
select
  sessions.spid as session_id,
  sessions.backend_start::timestamp as connect_time,
  'TCP'::sys.sysname as net_transport
from sys.every_session as sessions;
