select distinct rolname from pg_roles
where not rolsuper and rolname !~ '^pg_' and oid in (
  select relowner from pg_class where relnamespace = to_regnamespace(quote_ident(%(schema)s))
  union
  select nspowner from pg_namespace where nspname = %(schema)s
)
