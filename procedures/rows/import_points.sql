  if exists (
    select from {staged} as r
    where cardinality({value}) > {points} or array_ndims({value}) > 1 or array_position({value}, null) is not null
  ) then
    raise exception '%: % must be of one dimension, without a NULL and of at most % points', {name}, {column}, {points}
      using errcode = 'string_data_right_truncation';
  end if;
