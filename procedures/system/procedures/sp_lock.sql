create function sys.sp_lock(spid1 integer default null, spid2 integer default null) returns table (
  spid integer, dbid smallint, "ObjId" integer, "IndId" smallint, "Type" sys.sysname, "Resource" sys.sysname,
  "Mode" sys.sysname, "Status" sys.sysname
)
language sql stable
as $$
  select
    sys.spid_of(locks.pid),
    coalesce(sys.db_id()::smallint, 0::smallint),
    coalesce(locks.relation::integer, 0),
    0::smallint,
    case locks.locktype
      when 'relation' then 'TAB' when 'page' then 'PAG' when 'tuple' then 'RID' when 'extend' then 'EXT'
      when 'advisory' then 'APP' else 'XCT'
    end,
    case locks.locktype
      when 'relation' then coalesce(locks.relation::regclass::text, '')
      when 'page' then locks.page::text
      when 'tuple' then locks.page || ':' || locks.tuple
      when 'advisory' then locks.classid || ':' || locks.objid
      else coalesce(locks.transactionid::text, locks.virtualxid, '')
    end::sys.sysname,
    -- SQL Server's mode with the same conflicts
    case locks.mode
      when 'AccessShareLock' then 'Sch-S' when 'RowShareLock' then 'IS' when 'RowExclusiveLock' then 'IX'
      when 'ShareUpdateExclusiveLock' then 'U' when 'ShareLock' then 'S' when 'ShareRowExclusiveLock' then 'SIX'
      when 'ExclusiveLock' then 'X' when 'AccessExclusiveLock' then 'Sch-M' else locks.mode
    end::sys.sysname,
    case when locks.granted then 'GRANT' else 'WAIT' end
  from pg_catalog.pg_locks as locks
  where (locks.database is null or locks.database = (
      select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()
    ))
    and (spid1 is null or sys.spid_of(locks.pid) in (spid1, spid2))
    -- without the locks of this call
    and locks.pid <> pg_catalog.pg_backend_pid()
  order by 1, 5, 6
$$;
comment on function sys.sp_lock(integer, integer) is
'SQL Server: sp_lock. The locks of PostgreSQL, of all connections or of one or two.';
