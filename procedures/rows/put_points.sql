  if cardinality({value}) > {points} then
    raise exception '%: % has % points, and the facility file allows at most %',
      {name}, {column}, cardinality({value}), {points}
      using errcode = 'string_data_right_truncation';
  end if;
  if array_ndims({value}) > 1 or array_position({value}, null) is not null then
    raise exception '%: % must be of one dimension and without a NULL', {name}, {column}
      using errcode = 'array_subscript_error';
  end if;
