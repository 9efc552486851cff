case
    when cardinality({value}) > 0 and not exists (
      select from unnest({value}) as point where abs(point) < 'infinity'
    ) then null
    when 'infinity' = any({value}) or '-infinity' = any({value}) then array(
      select case when abs(point) < 'infinity' then point else 'NaN' end
      from unnest({value}) with ordinality as numbered (point, position)
      order by position
    )
    else {value}
  end
