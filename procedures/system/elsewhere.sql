-- Each view also exists as a function of the name of a database: log..sysobjects is sys.sysobjects('log').
--
-- PostgreSQL plans a view over the functions shown_… into the query that reads it, joined with its catalogue: `where object_id = …`
-- reads one object, and a text is read only if the query has its column. The other views are in a function, which PostgreSQL runs
-- once for a query: if their many joins were planned into those of a query, a join of a few would take minutes. The functions shown_…
-- are declared with many more rows than they have: a condition that leaves most of them must not make PostgreSQL expect one row, and
-- read the whole of another view for each.
do $$
declare
  seen record;
  query text;
  planned text := 'sys\.shown';
  before constant text := current_setting('search_path');
begin
  -- all names with their schemas
  perform set_config('search_path', 'pg_catalog', true);
  for seen in
    select
      format('%I.%I', views.relnamespace::regnamespace, views.relname) as name,
      format('%I.%I', views.relnamespace::regnamespace, 'every_row_of_' || views.relname) as definition,
      'every_row_of_' || views.relname as definition_name,
      case when views.relname ~ 'column|parameter|properties' then 5000 else 500 end as rows,
      pg_get_viewdef(views.oid) as query,
      obj_description(views.oid, 'pg_class') as description
    from pg_class as views
    where views.relkind = 'v'
      and views.relnamespace in ('sys'::regnamespace, 'tsql_information_schema'::regnamespace)
      and views.relname not like 'every\_%'
    order by views.oid
  loop
    -- of another database
    query := regexp_replace(seen.query, '\msys\.(shown_\w+)\(NULL::text', 'sys.\1($1', 'g');
    query := regexp_replace(query, '\m(' || planned || ')\M(?!\.|\()', '\1($1)', 'g');
    if query <> seen.query and query !~ '\msys\.(every_(?!stored_)|db_name|schema_name)' then
      planned := planned || '|' || replace(seen.name, '.', '\.');
      execute format('create function %1$s(database text) returns setof %1$s language sql stable rows %2$s as %3$L',
        seen.name, seen.rows, query);
      continue;
    end if;
    execute format('alter view %s rename to %I', seen.name, seen.definition_name);
    execute format(
      'create function %1$s() returns setof %2$s language plpgsql stable rows %3$s as %4$L',
      seen.name, seen.definition, seen.rows,
      format('begin return query select * from %s; end', seen.definition)
    );
    execute format('create view %1$s as select * from %1$s()', seen.name);
    execute format('comment on view %s is %L', seen.name, seen.description);
    execute format(
      'create function %1$s(database text) returns setof %2$s language plpgsql stable rows %3$s as %4$L',
      seen.name, seen.definition, seen.rows,
      format(
        'declare before constant text := sys.enter(database);'
        ' begin return query select * from %s; perform sys.leave(before); end',
        seen.definition
      )
    );
  end loop;
  perform set_config('search_path', before, true);
end
$$;
