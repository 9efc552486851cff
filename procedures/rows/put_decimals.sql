  if 'NaN' in ({values}) then
    raise exception '%: % = NaN is no number', {name},
      (select column_name from (values {named}) as decimals (column_name, value) where value = 'NaN' limit 1)
      using errcode = 'numeric_value_out_of_range';
  end if;
