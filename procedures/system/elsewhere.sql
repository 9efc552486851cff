-- Every view is a function, which PostgreSQL runs once for a query and takes as a table of so many rows: planned
-- into each other, a few of these views would be joined row by row for minutes. And once more with the name of a
-- database: log..sysobjects is sys.sysobjects('log').
do $$
declare
  seen record;
  body text;
begin
  for seen in
    select
      views.relnamespace::regnamespace::text as schema,
      views.relname as name,
      'every_row_of_' || views.relname as definition,
      case when views.relname ~ 'column|parameter|properties' then 5000 else 500 end as rows,
      obj_description(views.oid, 'pg_class') as description
    from pg_class as views
    where views.relkind = 'v'
      and views.relnamespace in ('sys'::regnamespace, 'tsql_information_schema'::regnamespace)
      and views.relname not like 'every\_%'
  loop
    execute format('alter view %I.%I rename to %I', seen.schema, seen.name, seen.definition);
    execute format(
      'create function %1$I.%2$I() returns setof %1$I.%3$I language plpgsql stable rows %4$s as %5$L',
      seen.schema, seen.name, seen.definition, seen.rows,
      format('begin return query select * from %I.%I; end', seen.schema, seen.definition)
    );
    execute format('create view %1$I.%2$I as select * from %1$I.%2$I()', seen.schema, seen.name);
    execute format('comment on view %I.%I is %L', seen.schema, seen.name, seen.description);
    execute format(
      'create function %1$I.%2$I(database text) returns setof %1$I.%3$I language plpgsql stable rows %4$s as %5$L',
      seen.schema, seen.name, seen.definition, seen.rows,
      format(
        'declare before constant text := sys.enter(database);'
        ' begin return query select * from %I.%I; perform sys.leave(before); end',
        seen.schema, seen.definition
      )
    );
  end loop;
end
$$;
