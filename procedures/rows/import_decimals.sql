  if exists (select from {staged} as r where 'NaN' in ({values})) then
    raise exception '%: NaN in a numeric column is no number', {name} using errcode = 'numeric_value_out_of_range';
  end if;
