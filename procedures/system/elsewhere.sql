-- Every view once more as a function that takes a database: log..sysobjects is sys.sysobjects('log').
do $$
declare
  seen text;
begin
  for seen in
    select format('%s.%I', views.relnamespace::regnamespace, views.relname)
    from pg_class as views
    where views.relkind = 'v'
      and views.relnamespace in ('sys'::regnamespace, 'tsql_information_schema'::regnamespace)
      and views.relname not like 'every\_%'
  loop
    execute format(
      'create function %1$s(database text) returns setof %1$s language plpgsql stable as %2$L',
      seen,
      format(
        'declare before constant text := sys.enter(database);'
        ' begin return query select * from %s; perform sys.leave(before); end',
        seen
      )
    );
  end loop;
end
$$;
