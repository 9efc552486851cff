-- CREATE VIEW and ALTER VIEW.

create or replace function tsql.view_digest(view oid) returns text
language sql stable set search_path = pg_catalog, pg_temp set quote_all_identifiers = off
as $$ select md5(pg_get_viewdef(view)) $$;
comment on function tsql.view_digest(oid) is
  'A digest of a view''s query in PostgreSQL''s form, independent of the session''s settings.';

create or replace function tsql.view_source(view oid) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select regexp_replace(said[3], '\n-- extended properties: \{.*\}$', '')
  from regexp_match(obj_description(view, 'pg_class'), '^T-SQL view of PostgreSQL (\d+), ([0-9a-f]{32})\n(.*)$') as said
  -- another version of PostgreSQL may write the same query differently
  where said[1]::integer <> current_setting('server_version_num')::integer / 10000
    or said[2] = tsql.view_digest(view)
$$;
comment on function tsql.view_source(oid) is
$$The T-SQL of a view, from its comment; null for a view of another origin, or if the view or its comment was changed since.$$;

create or replace function tsql.view_origins(view regclass)
returns table (number integer, of_table oid, of_column smallint)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  -- in the view's rule its own columns follow those of subqueries
  select distinct on (a.attnum) a.attnum, b.attrelid, b.attnum
  from pg_rewrite r
  cross join regexp_matches(r.ev_action::text,
    ':resno (\d+) :resname (\S+) :ressortgroupref \d+ :resorigtbl (\d+) :resorigcol (\d+) :resjunk false', 'g')
    with ordinality as entries (found, position)
  join pg_attribute a on a.attrelid = view and a.attnum = found[1]::integer
    and (a.attname = found[2] or found[2] like '%\\%')
  join pg_attribute b on b.attrelid = found[3]::oid and b.attnum = found[4]::smallint
    and (b.atttypid, b.atttypmod) = (a.atttypid, a.atttypmod)
  where r.ev_class = view and r.ev_type = '1'
  order by a.attnum, position desc
$$;
comment on function tsql.view_origins(regclass) is
  'The columns of tables and other views from which the columns of a view come, by position.';

create or replace procedure tsql.declare_view(target text, columns text[], declarations text[])
language plpgsql
as $$
declare
  names text[];
  says text[];
begin
  select array_agg(a.attname), array_agg(concat_ws(' ',
    coalesce(given.says, case when b.attname = a.attname then said[1] end, format('"%s"', replace(a.attname, '"', '""'))),
    nullif(said[2], '')))
  into names, says
  from pg_attribute a
  left join tsql.view_origins(target::regclass) as o on o.number = a.attnum
  left join pg_attribute b on b.attrelid = o.of_table and b.attnum = o.of_column
  left join lateral regexp_match(col_description(o.of_table, o.of_column), '^T-SQL ("(?:[^"]|"")+") ?([^\n]*)') as said on true
  left join unnest(columns, declarations) as given (name, says) on given.name = a.attname
  where a.attrelid = target::regclass and a.attnum > 0 and (given.says is not null or said is not null);
  call tsql.declare_columns(target, coalesce(names, '{}'), coalesce(says, '{}'));
end
$$;
comment on procedure tsql.declare_view(text, text[], text[]) is
$$Stores the declarations of a view's columns: the names in its definition, and the declarations of the tables' columns from
which they come.$$;

create or replace procedure tsql.make_view_again(definition text, target text)
language plpgsql
as $$
declare
  held record;
  rights text[] := '{}';
  columns name[] := '{}';
  because text;
begin
  for held in
    select given.*, ''::name as of_column
    from pg_class as views
    cross join aclexplode(views.relacl) as given
    where views.oid = target::regclass and given.grantee <> views.relowner
    union all
    select given.*, attributes.attname
    from pg_attribute as attributes
    cross join aclexplode(attributes.attacl) as given
    where attributes.attrelid = target::regclass
  loop
    rights := rights || format('grant %s%s on %s to %s%s',
      held.privilege_type,
      case when held.of_column <> '' then format(' (%I)', held.of_column) else '' end,
      target,
      case when held.grantee = 0 then 'public' else held.grantee::regrole::text end,
      case when held.is_grantable then ' with grant option' else '' end);
    columns := columns || held.of_column;
  end loop;
  begin
    execute 'drop view ' || target;
  exception when dependent_objects_still_exist then
    get stacked diagnostics because = pg_exception_detail;
    perform tsql.raise(3729, 16, 1, format('Cannot ALTER ''%s'' because it is being referenced by object ''%s''.',
      array_to_string(parse_ident(target, false), '.'), substring(because from '^\w+ (.+?) depends on')));
  end;
  execute definition;
  for index in 1 .. cardinality(rights) loop
    -- rights on dropped columns are dropped too
    if columns[index] = '' or exists (
      select from pg_attribute where attrelid = target::regclass and attname = columns[index]
    ) then
      execute rights[index];
    end if;
  end loop;
end
$$;
comment on procedure tsql.make_view_again(text, text) is
$$Replaces a view's query by one with other columns; PostgreSQL's own replacement can only append columns. Rights are kept.
Error: another view uses it (3729).$$;

create or replace procedure tsql.create_view(
  action text, definition text, target text, columns text[], declarations text[], source text
)
language plpgsql
as $$
begin
  if action = 'alter' and to_regclass(target) is null then
    perform tsql.raise(208, 16, 6, format('Invalid object name ''%s''.', array_to_string(parse_ident(target, false), '.')));
  end if;
  if action <> 'create' and (select relkind <> 'v' from pg_class where oid = to_regclass(target)) then
    perform tsql.raise(2010, 16, 1, format('Cannot perform alter on ''%s'' because it is an incompatible object type.',
      array_to_string(parse_ident(target, false), '.')));
  end if;
  begin
    execute definition;
  exception when invalid_table_definition then
    if action = 'create' then
      raise;
    end if;
    call tsql.make_view_again(definition, target);
  end;
  call tsql.declare_view(target, columns, declarations);
  execute format('comment on view %s is %L', target, tsql.with_properties(
    format(E'T-SQL view of PostgreSQL %s, %s\n%s',
      current_setting('server_version_num')::integer / 10000, tsql.view_digest(target::regclass), source),
    obj_description(target::regclass, 'pg_class')));
end
$$;
comment on procedure tsql.create_view(text, text, text, text[], text[], text) is
$$Runs a CREATE VIEW, and stores its T-SQL and the case of its columns' names. action: create, alter or create or alter.
Error: there is nothing to alter (208).$$;
