with
  happened as (
    select
      *,
      (kind, case when kind <> 'thinned' then message end) is distinct from (
        lag(kind) over before,
        lag(case when kind <> 'thinned' then message end) over before
      ) as is_first
    {chosen}
    window before as (partition by table_name order by "time", number)
  ),
  counted as (
    select *, count(*) filter (where is_first) over (partition by table_name order by "time", number) as run
    from happened
  )
select
  table_name,
  min("time"),
  max(coalesce(until, "time")) filter (where until is not null or not is_first),
  kind,
  sum(rows)::bigint,
  concat_ws(
    ' ',
    (array_agg(message order by "time", number))[count(*)],
    case when count(*) > 1 then format('(%%s events)', count(*)) end
  )
from counted
group by table_name, run, kind
order by 2, 1
limit {most}
