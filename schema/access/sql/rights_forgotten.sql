with its as (select oid from pg_roles where rolname = %(login)s),
owner as (select oid from pg_roles where rolname = 'ringlog_owner')
select format('function %%s', pg_proc.oid::regprocedure)
from pg_proc, its, owner
where pronamespace = 'ringlog'::regnamespace and proowner = owner.oid
  and exists (select from aclexplode(proacl) where grantee = its.oid)
union all
select format('table %%s', pg_class.oid::regclass)
from pg_class, its, owner
where relkind in ('r', 'p', 'v') and relowner = owner.oid and (
  exists (select from aclexplode(relacl) where grantee = its.oid) or exists (
    select from pg_attribute, aclexplode(attacl)
    where attrelid = pg_class.oid and grantee = its.oid
  )
)
