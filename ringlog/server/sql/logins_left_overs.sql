select bool_and(
  deptype = 'a' or dbid = (select oid from pg_database where datname = current_database())
  and (classid in ('pg_largeobject'::regclass, 'pg_default_acl'::regclass) or (
    select schema ~ '^(pg_temp|pg_toast_temp)'
    from pg_identify_object(classid, objid, objsubid)
  ) is true)
)
from pg_shdepend
where refclassid = 'pg_authid'::regclass and refobjid = to_regrole(quote_ident(%s)) and deptype in ('o', 'a')
