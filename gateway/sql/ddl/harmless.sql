-- Whether the definition of a table may run as any login: nobody can attach code to it.

create or replace function tsql.is_provided(schema oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$ select schema in ('pg_catalog'::regnamespace, 'tsql'::regnamespace) $$;
comment on function tsql.is_provided(oid) is
'Whether a schema is PostgreSQL''s or tsql, whose objects no login has made; null for none.';

create or replace function tsql.is_harmless(tree text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select not exists (
    select from regexp_matches(tree, '\{([A-Z]+)', 'g') as node
    where node[1] <> all (array[
      'ARRAYCOERCEEXPR', 'ARRAYEXPR', 'ARRAY', 'BOOLEANTEST', 'BOOLEXPR', 'CASE', 'CASEEXPR', 'CASETESTEXPR', 'CASEWHEN',
      'COALESCE', 'COALESCEEXPR', 'COERCETODOMAIN', 'COERCEVIAIO', 'COLLATE', 'COLLATEEXPR', 'CONST', 'DISTINCTEXPR',
      'FIELDSELECT', 'FUNCEXPR', 'MINMAX', 'MINMAXEXPR', 'NAMEDARGEXPR', 'NULLIFEXPR', 'NULLTEST', 'OPEXPR',
      'RELABELTYPE', 'ROW', 'ROWEXPR', 'SCALARARRAYOPEXPR', 'SQLVALUEFUNCTION', 'VAR'])
  ) and not exists (
    select from regexp_matches(tree, ':\w*funcid (\d+)', 'g') as called
    left join pg_proc on pg_proc.oid = called[1]::oid
    where called[1] <> '0' and (
      pg_proc.oid is null
      or not tsql.is_provided(pronamespace)
      or not (
        provolatile = 'i'
        -- any login can create an operator or a cast for a function of these schemas, in its own or between its own types
        or exists (
          select from pg_operator where oprcode = pg_proc.oid and tsql.is_provided(oprnamespace)
        )
        or exists (
          select from pg_cast
          join pg_type as sources on sources.oid = castsource
          join pg_type as targets on targets.oid = casttarget
          where castfunc = pg_proc.oid
            and tsql.is_provided(sources.typnamespace) and tsql.is_provided(targets.typnamespace)
        )
        -- the clock, newid() and the user's name
        or proname in ('clock_timestamp', 'statement_timestamp', 'gen_random_uuid', 'caller', 'getdate', 'getutcdate',
          'sysdatetime', 'sysutcdatetime', 'sysdatetimeoffset', 'next_rowversion')
      )
    )
  ) and not exists (
    select from regexp_matches(tree, ':opno (\d+)', 'g') as applied
    left join pg_operator on pg_operator.oid = applied[1]::oid
    where pg_operator.oid is null or not tsql.is_provided(oprnamespace)
  ) and not exists (
    select from regexp_matches(tree, ':\w*type(?:id)? (\d+)', 'gi') as used
    left join pg_type on pg_type.oid = used[1]::oid
    where used[1] <> '0' and (
      pg_type.oid is null
      or not tsql.is_provided(typnamespace)
      -- they name tables, functions or text search configurations, which a site may have made
      or typname ~ '^(oid|reg.*)$'
    )
  )
$$;
comment on function tsql.is_harmless(text) is
$$Whether an expression, as PostgreSQL stores it (pg_node_tree), may run as any login: its types, operators and functions
are those of PostgreSQL and of schema tsql, have no effect and read no table.$$;

create or replace function tsql.unfit_in(draft oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with expressions (shown, tree) as (
    select pg_get_expr(adbin, adrelid), adbin::text from pg_attrdef where adrelid = draft
    union all
    select pg_get_constraintdef(oid), conbin::text from pg_constraint where conrelid = draft and conbin is not null
    union all
    select pg_get_expr(tree, indrelid), tree::text
    from pg_index
    cross join lateral (values (indexprs), (indpred)) as parts (tree)
    where indrelid = draft and tree is not null
  )
  select shown
  from (
    select shown from expressions where not tsql.is_harmless(tree)
    union all
    select pg_get_constraintdef(oid) from pg_constraint where conrelid = draft and contype not in ('p', 'u', 'c', 'n')
    union all
    select format('%I %s', attname, format_type(atttypid, atttypmod))
    from pg_attribute
    join pg_type on pg_type.oid = atttypid
    left join pg_collation on pg_collation.oid = attcollation
    where attrelid = draft and attnum > 0 and not attisdropped
      and not (tsql.is_provided(typnamespace) and tsql.is_provided(coalesce(collnamespace, typnamespace)))
    union all
    select opcname
    from pg_index
    cross join lateral unnest(indclass) as classes (class)
    join pg_opclass on pg_opclass.oid = class
    where indrelid = draft and not tsql.is_provided(opcnamespace)
  ) as unfit
  limit 1
$$;
comment on function tsql.unfit_in(oid) is
$$A part of a draft that would run code of its maker as whoever uses the table: an expression, a type or a constraint;
null for none.$$;
