-- Every function and procedure that a client may call: no aggregates, window functions or triggers. An entry is valid
-- while all of this is unchanged: the version of its row, by which PostgreSQL's own languages recognize a function that
-- they have compiled (src/pl/plpgsql/src/pl_comp.c), its schema's name and owner, and whether its own owner can log in.
select p.oid, pg_catalog.concat_ws(' ', p.xmin, p.ctid, owner.rolcanlogin, n.nspowner, n.nspname)
  from pg_catalog.pg_namespace n
  -- PostgreSQL has no index of a schema's functions but that of their dependencies on it
  join pg_catalog.pg_depend inside
    on inside.refclassid = 'pg_catalog.pg_namespace'::regclass and inside.refobjid = n.oid
    and inside.classid = 'pg_catalog.pg_proc'::regclass
  join pg_catalog.pg_proc p on p.oid = inside.objid and p.pronamespace = n.oid
  join pg_catalog.pg_roles owner on owner.oid = p.proowner
 where p.prokind in ('f', 'p')
   and p.prorettype not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
   and :schemas
   -- of the system's schemas only the procedures
   and (n.nspname not in ('sys', 'sybsystemprocs') or p.proname like 'sp\_%')
   and p.provariadic = 0
