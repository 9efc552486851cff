-- The properties of functions and procedures, without their arguments.
select p.oid,
       case when n.oid = pg_catalog.pg_my_temp_schema() then 'pg_temp' else n.nspname end,
       p.proname,
       p.prokind,
       p.proretset,
       p.prorettype,
       -- Calls join group commit if they run only the installer's code: on the gateway's connection the code of others
       -- would have the gateway's rights, and could act as any login. PostgreSQL runs code of a type (its input, its
       -- checks) outside the function's body.
       n.nspname = 'ringlog'
         and p.prosecdef
         and p.provolatile = 'v'
         and not p.proretset
         and p.prokind = 'f'
         and p.proowner = n.nspowner
         and not owner.rolcanlogin
         -- a function with other settings may delay the others (lock_timeout) or is meant for the caller's connection
         and coalesce(pg_catalog.cardinality(p.proconfig) = 1 and p.proconfig[1] like 'search_path=%', false)
         and not exists (
           select
             from pg_catalog.unnest(
                    coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[]) || p.prorettype
                  ) as used (type)
             join pg_catalog.pg_type t on t.oid = used.type
             left join pg_catalog.pg_attribute a
               on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
             left join pg_catalog.pg_type part on part.oid = a.atttypid
            where t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace
              and not (
                t.typtype = 'c'
                and t.typowner = p.proowner
                and coalesce(part.typnamespace = 'pg_catalog'::pg_catalog.regnamespace, true)
              )
         ),
       p.pronargs - p.pronargdefaults,
       p.provolatile <> 'v',
       -- procedures of T-SQL: the options of parsing, and the called procedures (database, schema and name, as JSON)
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
