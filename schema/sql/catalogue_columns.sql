select attname::text, format_type(atttypid, atttypmod)
from pg_attribute
where attrelid = to_regclass(%(relation)s) and attnum > 0 and not attisdropped
order by attnum
