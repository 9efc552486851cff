-- views of summaries take only those arrays apart that are asked for: see _VIEW of summaries.py
do $$
declare
  view record;
begin
  for view in
    select schema.name as of_level, schema.level, relation.relname as name
    from (values ('ten_seconds', 10), ('minute', 60), ('ten_minutes', 600), ('hour', 3600), ('day', 86400))
      as schema (name, level)
    join pg_class as relation on relation.relnamespace = to_regnamespace(schema.name) and relation.relkind = 'v'
    where relation.relname in (select table_name from ringlog.summarised)
  loop
    execute format(
      $view$
      create or replace view %1$I.%2$I as
      select
        span.column_name,
        span."time",
        span.n[number] as n,
        nullif(span.min[number], 'NaN') as min,
        nullif(span.max[number], 'NaN') as max,
        nullif(span.mean[number], 'NaN') as mean,
        nullif(span.first[number], 'NaN') as first,
        nullif(span.last[number], 'NaN') as last,
        case when span.n[number] > 0 then sqrt(span.squares[number] / span.n[number]) end as std,
        coalesce(span.nans[number], 0) as nans,
        coalesce(span.nulls[number], 0) as nulls,
        span.begins as block
      from (
        select
          block.*,
          generate_series(1, cardinality(block.n)) as number,
          generate_series(
            block.begins, block.begins + (cardinality(block.n) - 1) * interval %3$L, interval %3$L
          ) as "time"
        from summary.%2$I as block
        where block.level = %4$s
      ) as span
      where span.n[number] > 0 or span.nans[number] > 0 or span.nulls[number] > 0
      $view$,
      view.of_level, view.name, view.level || ' seconds', view.level
    );
  end loop;
end
$$;
