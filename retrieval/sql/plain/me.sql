-- the login, the server's clock, and the facility's time zone, which the installation has set for the database
select
  current_user::text as login,
  now() as now,
  coalesce(
    (
      select split_part(one, '=', 2)
      from pg_catalog.pg_db_role_setting as settings
      cross join unnest(settings.setconfig) as one
      where settings.setrole = 0
        and settings.setdatabase = (select oid from pg_catalog.pg_database where datname = current_database())
        and lower(split_part(one, '=', 1)) = 'timezone'
    ),
    current_setting('TimeZone')
  ) as timezone
