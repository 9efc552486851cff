select c.conname, c.conrelid::regclass::text, c.confrelid::regclass::text,
  string_agg(format('a.%%I is not null', f.attname), ' and ' order by k.position),
  string_agg(format('a.%%I = b.%%I', f.attname, r.attname), ' and ' order by k.position)
from pg_constraint c
cross join lateral unnest(c.conkey, c.confkey) with ordinality as k (here, there, position)
join pg_attribute f on f.attrelid = c.conrelid and f.attnum = k.here
join pg_attribute r on r.attrelid = c.confrelid and r.attnum = k.there
where c.contype = 'f' and c.connamespace = to_regnamespace(format('%%I', %s::text))
group by c.oid order by 2, 1
