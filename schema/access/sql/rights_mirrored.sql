select format('table %%s', pg_class.oid::regclass), 'select'
from pg_class, aclexplode(relacl) as granted
where relnamespace = 'ringlog'::regnamespace and relkind in ('r', 'v')
  and granted.grantee = to_regrole(%(reader)s) and granted.privilege_type = 'SELECT'
  and not has_table_privilege(%(table_reader)s, pg_class.oid, 'select')
union all
select 'function ringlog.array_bytes(anyarray)', 'execute'
where not has_function_privilege(
  %(table_reader)s, to_regprocedure('ringlog.array_bytes(anyarray)'), 'execute'
)
