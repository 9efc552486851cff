-- comments of schemas, relations and columns that are missing or of an earlier facility file
do language plpgsql $comments$
declare
  statement text;
begin
  for statement in
    with relation as materialized (
      select class.oid, nspname::text as schema, relname::text as name,
        case relkind when 'v' then 'view' when 'f' then 'foreign table' else 'table' end as kind
      from pg_catalog.pg_class as class
      join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
      where nspname = any ({schemas}) and relkind in ('r', 'p', 'v', 'f') and not relispartition
        and pg_has_role(relowner, 'usage')
    ), signal as materialized (
      select distinct on (table_name, column_name) table_name, column_name,
        concat_ws(': ', nullif(unit, ''), nullif(description, '')) as text, signal
      from ringlog.signal
      order by table_name, column_name, valid_to desc nulls first, valid_from desc
    ), wanted (command, text, present) as (
      select format('schema %I', nspname), {of_schemas}::jsonb ->> nspname::text,
        obj_description(oid, 'pg_namespace')
      from pg_catalog.pg_namespace
      where {of_schemas}::jsonb ? nspname::text and pg_has_role(nspowner, 'usage')
      union all
      select format('%s %I.%I', kind, schema, name),
        case
          when {of_relations}::jsonb ? schema and table_name is not null
          then format({of_relations}::jsonb ->> schema, coalesce(nullif(description, ''), name))
          else coalesce(obj_description(oid, 'pg_class'), format('of table %s', name))
        end,
        obj_description(oid, 'pg_class')
      from relation
      left join ringlog.logged_table on table_name = name
      union all
      select format('column %I.%I.%I', schema, name, attname),
        case
          when schema = any ({summaries}) then {of_summaries}::jsonb ->> attname::text
          when schema = any ({rows}) and {keys}::jsonb ? attname::text then {keys}::jsonb ->> attname::text
          when schema = any ({rows}) and signal.signal is not null
          then case when signal.text = '' then format('signal %s', signal.signal)
            else format('%s (signal %s)', signal.text, signal.signal) end
          when starts_with(schema, 'parameter') and parameter.column_name is not null
          then coalesce(
            nullif(concat_ws(': ', nullif(parameter.unit, ''), nullif(parameter.description, '')), ''),
            'parameter'
          )
          else coalesce(
            col_description(relation.oid, attnum), {by_name}::jsonb ->> attname::text
          )
        end,
        col_description(relation.oid, attnum)
      from relation
      join pg_catalog.pg_attribute on attrelid = relation.oid and attnum > 0 and not attisdropped
      left join signal on signal.table_name = name and signal.column_name = attname
      left join ringlog.parameter_column as parameter
        on parameter.table_name = name and parameter.column_name = attname
    )
    select format('comment on %s is %L', command, text)
    from wanted
    where text is distinct from present and text is not null
  loop
    execute statement;
  end loop;
end
$comments$
