  -- a value stored before the limits were set stays until it changes
  if not ({value} between {low} and {high}) and {value} is distinct from {value_before} then
    raise exception '%: % = % is outside its limits, % to %', row_shown, {column}, {value}, {low}, {high}
      using errcode = 'check_violation';
  end if;
