  if abs({value}) < 'infinity' is false then
    raise exception '%: % = % is no number', row_shown, {column}, {value} using errcode = 'check_violation';
  end if;
