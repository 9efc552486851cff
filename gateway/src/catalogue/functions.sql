-- What there is to know of functions and procedures, without their arguments.
select p.oid,
       case when n.oid = pg_catalog.pg_my_temp_schema() then 'pg_temp' else n.nspname end,
       p.proname,
       p.prokind,
       p.proretset,
       p.prorettype,
       -- a call joins group commit only where nothing it runs can change the connection it shares:
       -- SECURITY DEFINER forbids setting the role, the search path is fixed, and its owner cannot log in
       -- it joins those of its owner; 0: it is one of the installer's
       case
         when p.prosecdef
              and p.provolatile = 'v'
              and not p.proretset
              and p.prokind = 'f'
              and n.oid <> pg_catalog.pg_my_temp_schema()
              and not owner.rolcanlogin
              and coalesce(p.proconfig::text like '%search_path=%', false)
              -- one that says itself how long it waits for locks would hold up the others
              and p.proconfig::text not like '%lock_timeout=%'
           then case when n.nspname = 'ringlog' then 0 else p.proowner end
       end,
       p.pronargs - p.pronargdefaults,
       p.provolatile <> 'v',
       -- procedures of T-SQL: how their text was read, and whom they call (database, schema and name, as JSON)
       case
         when p.prokind = 'p' and n.nspname <> 'ringlog'
           then substring(p.prosrc from '\n-- read as ([a-z0-9 ]*)\n$')
       end,
       case
         when p.prokind = 'p' and n.nspname <> 'ringlog' and p.prosrc like '%tsql.execute(%'
           then (
             select pg_catalog.json_agg(called)
               from pg_catalog.regexp_matches(
                      p.prosrc, $$tsql\.execute\('([^']*)', '([^']*)', '([^']*)',$$, 'g'
                    ) as called
           )
       end,
       -- the type of the value of a function of T-SQL
       case
         when p.prokind = 'f' and n.nspname <> 'ringlog'
           then substring(right(p.prosrc, 100) from '\n-- returns ([^\n]+)\n$')
       end,
       -- the types of the parameters of T-SQL
       case
         when n.nspname <> 'ringlog' and p.prosrc like '%-- takes %'
           then substring(p.prosrc from '.*\n-- takes ([^\n]+)\n')
       end
  from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  join pg_catalog.pg_roles owner on owner.oid = p.proowner
 where p.oid = any (:functions)
