select function.pronamespace::regnamespace::text, function.proname,
  case when function.proretset then 'rows' when function.prorettype = 'integer'::regtype then 'status'
    when function.prorettype = 'void'::regtype then 'nothing' else 'rows' end,
  coalesce(argument.name, ''), coalesce(argument.mode, 'i')::text, argument.type::regtype::text,
  field.attname, coalesce(field.atttypid, argument.type)::regtype::text
from pg_catalog.pg_proc as function
left join lateral unnest(
  coalesce(function.proallargtypes, function.proargtypes::oid[]), function.proargmodes, function.proargnames
) with ordinality as argument (type, mode, name, position) on coalesce(argument.mode, 'i') in ('i', 'o', 'b')
left join pg_catalog.pg_type as type on type.oid = argument.type and type.typtype = 'c'
left join pg_catalog.pg_attribute as field
  on field.attrelid = type.typrelid and field.attnum > 0 and not field.attisdropped
where function.oid = to_regproc(%s) and function.prokind = 'f'
order by argument.position, field.attnum
