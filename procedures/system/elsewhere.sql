-- The views with a column of that name, by which PostgreSQL finds the few objects of a query: see below.
create function sys.described(database text, with_procedures boolean)
returns table (relation oid, object_id integer, id integer, table_name sys.sysname)
language plpgsql stable rows 500
as $$
declare
  before constant text := sys.enter(database);
begin
  return query
  select listed.oid, listed.oid::integer, listed.oid::integer, listed.name::sys.sysname
  from (
    select relations.oid, relations.name from sys.every_relation as relations
    union all
    select procedures.oid, null from sys.every_procedure as procedures where with_procedures
  ) as listed;
  perform sys.leave(before);
end
$$;

-- Every view returns the rows of a function, which PostgreSQL runs once for a query. If the views were planned into each
-- other, a join of a few would take minutes. Each function also exists with the name of a database: log..sysobjects is
-- sys.sysobjects('log').
--
-- A view of columns, whose first column is the relation, has a function for one relation, called for each relation of
-- the query: `where object_id = …` is evaluated first, so one table's columns cost the same among thousands of tables.
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
      exists (
        select from pg_attribute where attrelid = views.oid and attnum = 1 and attname = 'relation'
      ) as is_by_relation,
      (
        select string_agg(quote_ident(attname), ', ' order by attnum)
        from pg_attribute where attrelid = views.oid and attnum > 1
      ) as shown,
      (
        select string_agg(
          case when attname in ('object_id', 'id', 'table_name') then 'described.' else 'listed.' end
            || quote_ident(attname),
          ', ' order by attnum
        )
        from pg_attribute where attrelid = views.oid and attnum > 1
      ) as joined,
      obj_description(views.oid, 'pg_class') as description
    from pg_class as views
    where views.relkind = 'v'
      and views.relnamespace in ('sys'::regnamespace, 'tsql_information_schema'::regnamespace)
      and views.relname not like 'every\_%'
  loop
    execute format('alter view %I.%I rename to %I', seen.schema, seen.name, seen.definition);
    if seen.is_by_relation then
      execute format(
        'create function %1$I.%2$I(relation oid, database text) returns setof %1$I.%3$I'
        ' language plpgsql stable cost 5000 rows 100 as %4$L',
        seen.schema, seen.name, seen.definition,
        format(
          'declare before constant text := sys.enter(database); begin'
          ' return query select * from %I.%I as listed where listed.relation = $1; perform sys.leave(before); end',
          seen.schema, seen.definition
        )
      );
      body := format(
        'select %s from sys.described(%%1$s, %L) as described'
        ' cross join lateral %I.%I(described.relation, %%1$s) as listed',
        seen.joined, seen.name = 'syscolumns', seen.schema, seen.name
      );
      execute format('create view %I.%I as ', seen.schema, seen.name) || format(body, 'null');
      execute format('comment on view %I.%I is %L', seen.schema, seen.name, seen.description);
      -- in SQL, so that it is inlined into the query
      execute format(
        'create view %1$I.%2$I as select %3$s from %1$I.%4$I',
        seen.schema, 'every_shown_row_of_' || seen.name, seen.shown, seen.definition
      );
      execute format(
        'create function %1$I.%2$I(database text) returns setof %1$I.%3$I language sql stable rows %4$s as %5$L',
        seen.schema, seen.name, 'every_shown_row_of_' || seen.name, seen.rows, format(body, '$1')
      );
      continue;
    end if;
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
