-- Locks of applications, by name: PostgreSQL's advisory locks.
create function sys.applock_key(resource text) returns bigint
language sql stable
as $$ select hashtextextended('applock ' || sys.current_database() || ' ' || resource, 0) $$;
comment on function sys.applock_key(text) is 'The advisory lock of a resource: each database has its own.';

create function sys.applock_owner(owner text) returns text
language sql stable
as $$
  select said from lower(owner) as said
  where said = 'session'
    or said = 'transaction' and coalesce(nullif(current_setting('tsql.trancount', true), ''), '0') <> '0'
$$;
comment on function sys.applock_owner(text) is 'session or transaction; null: another word, or there is no transaction.';

create function sys.demand_resource(resource text) returns void
language plpgsql immutable
as $$
begin
  if resource is null then
    perform tsql.raise(1224, 16, 5, 'An invalid application lock resource was passed to xp_userlock.');
  end if;
end
$$;

create function sys.sp_getapplock(
  "Resource" text, "LockMode" text, "LockOwner" text default 'Transaction', "LockTimeout" integer default -1,
  "DbPrincipal" text default null
) returns integer
language plpgsql
as $$
declare
  owner constant text := sys.applock_owner("LockOwner");
  mode constant text := lower("LockMode");
  key constant bigint := sys.applock_key("Resource");
  patience constant text := current_setting('lock_timeout');
  given boolean;
begin
  perform sys.demand_resource("Resource");
  if "LockTimeout" < -1 then
    perform tsql.raise(1227, 16, 2, 'An invalid application lock time-out was passed to xp_userlock.');
  end if;
  if mode in ('update', 'intentshared', 'intentexclusive') then
    perform tsql.raise(102, 15, 1, format('''@LockMode = %s'' is not supported: Shared and Exclusive are.', "LockMode"));
  end if;
  if owner is null or mode is null or mode not in ('shared', 'exclusive') then
    return -999;
  end if;
  given := case
    when owner = 'session' and mode = 'shared' then pg_catalog.pg_try_advisory_lock_shared(key)
    when owner = 'session' then pg_catalog.pg_try_advisory_lock(key)
    when mode = 'shared' then pg_catalog.pg_try_advisory_xact_lock_shared(key)
    else pg_catalog.pg_try_advisory_xact_lock(key)
  end;
  if given then
    return 0;
  end if;
  if "LockTimeout" = 0 then
    return -1;
  end if;
  begin
    -- 0 waits without limit
    perform set_config('lock_timeout', greatest("LockTimeout", 0)::text, true);
    case
      when owner = 'session' and mode = 'shared' then perform pg_catalog.pg_advisory_lock_shared(key);
      when owner = 'session' then perform pg_catalog.pg_advisory_lock(key);
      when mode = 'shared' then perform pg_catalog.pg_advisory_xact_lock_shared(key);
      else perform pg_catalog.pg_advisory_xact_lock(key);
    end case;
    perform set_config('lock_timeout', patience, true);
  exception
    when lock_not_available then return -1;
    when deadlock_detected then return -3;
  end;
  return 1;
end
$$;
comment on function sys.sp_getapplock(text, text, text, integer, text) is
$$SQL Server: sp_getapplock. Returns 0: granted, 1: granted after a wait, -1: not granted within @LockTimeout (milliseconds;
-1 waits without end), -3: deadlock, -999: another word, or no transaction that could own the lock. Shared and Exclusive only. The lock is held to the end of the transaction or, with
@LockOwner = 'Session', until sp_releaseapplock or the end of the session.$$;

create function sys.sp_releaseapplock(
  "Resource" text, "LockOwner" text default 'Transaction', "DbPrincipal" text default null
) returns integer
language plpgsql
as $$
declare
  owner constant text := sys.applock_owner("LockOwner");
  key constant bigint := sys.applock_key("Resource");
  held text;
begin
  perform sys.demand_resource("Resource");
  if owner is null then
    return -999;
  end if;
  if owner = 'transaction' then
    raise exception 'A lock owned by a transaction is released at its end only.' using errcode = 'feature_not_supported';
  end if;
  select locks.mode into held
  from pg_catalog.pg_locks as locks
  where locks.locktype = 'advisory' and locks.pid = pg_catalog.pg_backend_pid() and locks.granted
    and locks.objsubid = 1
    and (locks.classid::bigint << 32 | locks.objid::bigint) = key
  order by locks.mode = 'ExclusiveLock' desc
  limit 1;
  if held is null then
    perform tsql.raise(1223, 16, 1, format(
      'Cannot release the application lock (Database Principal: ''%s'', Resource: ''%s'') because it is not currently held.',
      coalesce("DbPrincipal", 'public'), "Resource"));
  end if;
  if held = 'ExclusiveLock' then
    perform pg_catalog.pg_advisory_unlock(key);
  else
    perform pg_catalog.pg_advisory_unlock_shared(key);
  end if;
  return 0;
end
$$;
comment on function sys.sp_releaseapplock(text, text, text) is
'SQL Server: sp_releaseapplock, of locks that a session owns.';
