  if (select coalesce(sum(each), 0) from unnest(lengths) as each) is distinct from cardinality(samples) or 0 > any(lengths) then
    raise exception '%: the lengths are not those of all points', {name} using errcode = 'array_subscript_error';
  end if;
  if {points} < any(lengths) then
    raise exception '%: a waveform has % points, and the facility file allows at most %',
      {name}, (select max(each) from unnest(lengths) as each), {points}
      using errcode = 'string_data_right_truncation';
  end if;
  if array_ndims(samples) > 1 or array_lower(samples, 1) <> 1 or array_position(samples, null) is not null then
    raise exception '%: samples must be of one dimension, counted from 1, and without a NULL among the points', {name}
      using errcode = 'array_subscript_error';
  end if;
