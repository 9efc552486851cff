-- The names of columns, as a list.
create function sys.column_list(relation oid, numbers smallint[]) returns text
language sql stable
as $$
  select string_agg(columns.name, ', ' order by listed.position)
  from unnest(numbers) with ordinality as listed (number, position)
  join sys.every_column as columns on columns.relation = column_list.relation and columns.number = listed.number
$$;

create function sys.sp_helpconstraint(objname text) returns table (
  constraint_type sys.line, constraint_name sys.sysname, delete_action varchar(11), update_action varchar(11),
  status_enabled varchar(8), status_for_replication varchar(19), constraint_keys sys.list
)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  id constant integer := sys.demand_object(objname);
begin
  return query
  with
    action (code, words) as (
      values (0, 'No Action'), (1, 'Cascade'), (2, 'Set Null'), (3, 'Set Default')
    ),
    found (line, type, name, deleted, updated, enabled, keys) as (
      select
        1,
        format('%s (%sclustered)', case keys.type when 'PK' then 'PRIMARY KEY' else 'UNIQUE' end,
          case when indexes.is_clustered then '' else 'non-' end), keys.name,
        '(n/a)', '(n/a)', '(n/a)', sys.column_list(keys.relation, keys.columns)
      from sys.every_constraint as keys
      join sys.every_unnumbered_index as indexes on indexes.oid = keys.index
      where keys.relation = id::oid and keys.type in ('PK', 'UQ')
      union all
      select
        line.number,
        'FOREIGN KEY', keys.name, deleting.words, updating.words,
        case when foreign_keys.is_disabled then 'Disabled' else 'Enabled' end,
        case line.number
          when 1 then sys.column_list(keys.relation, keys.columns)
          else format('REFERENCES %s (%s)', referenced.name, sys.column_list(keys.referenced, keys.referenced_columns))
        end
      from sys.every_constraint as keys
      join sys.foreign_keys as foreign_keys on foreign_keys.object_id = keys.oid::integer
      join sys.every_relation as referenced on referenced.oid = keys.referenced
      join action as deleting on deleting.code = foreign_keys.delete_referential_action
      join action as updating on updating.code = foreign_keys.update_referential_action
      cross join (values (1), (2)) as line (number)
      where keys.relation = id::oid and keys.type = 'F'
      union all
      select
        1,
        'CHECK ' || case cardinality(keys.columns)
          when 1 then 'on column ' || sys.column_list(keys.relation, keys.columns) else 'Table Level'
        end,
        keys.name, '(n/a)', '(n/a)', case when checks.is_disabled then 'Disabled' else 'Enabled' end,
        checks.definition
      from sys.every_constraint as keys
      join sys.check_constraints as checks on checks.object_id = keys.oid::integer
      where keys.relation = id::oid and keys.type = 'C'
      union all
      select
        1, 'DEFAULT on column ' || columns.name, defaults.name, '(n/a)', '(n/a)', '(n/a)', defaults.definition
      from sys.default_constraints as defaults
      join sys.every_column as columns on columns.relation = id::oid and columns.number = defaults.parent_column_id
      where defaults.parent_object_id = id
    )
  select
    -- the second line of a foreign key names only the referenced table
    case found.line when 1 then found.type else ' ' end::sys.line,
    case found.line when 1 then found.name else ' ' end::sys.sysname,
    case found.line when 1 then found.deleted else ' ' end::varchar,
    case found.line when 1 then found.updated else ' ' end::varchar,
    case found.line when 1 then found.enabled else ' ' end::varchar,
    case when found.line = 2 then ' ' when found.enabled = '(n/a)' then '(n/a)' else 'Is_For_Replication' end::varchar,
    found.keys::sys.list
  from found
  order by found.type, found.name, found.line;
  if not found then
    raise notice 'No constraints are defined on object ''%'', or you do not have permissions.', objname;
  end if;
end
$$;
comment on function sys.sp_helpconstraint(text) is
'SQL Server: sp_helpconstraint, the keys, checks and defaults of a table.';
