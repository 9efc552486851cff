-- the spans in which a condition holds, in columns and as a text
select array_send(array_agg(lower(span))), array_send(array_agg(upper(span))), range_agg(span)::text
from unnest(ringlog.condition_spans(
  $1, $2::timestamptz, $3::timestamptz, nullif($4::double precision, 'infinity')
)) as span
