-- Made from gateway/tsql/src/facts/errors.rs, where these facts stand: UPDATE_CASES=1 cargo test -p tsql --test facts
-- writes this file anew.

create or replace function tsql.error_number(sqlstate text) returns integer
language sql immutable
as $$
  select case
    when sqlstate ~ '^S\d{4,5}$' then substr(sqlstate, 2)::integer
    when sqlstate in ('21000') then 512
    when sqlstate in ('22001') then 8152
    when sqlstate in ('22003', '2200H') then 8115
    when sqlstate in ('22012') then 8134
    when sqlstate in ('22007', '22008', '22023', '22P02', '22P03') then 8114
    when sqlstate in ('23502') then 515
    when sqlstate in ('23503', '23514', '23P01') then 547
    when sqlstate in ('23505') then 2601
    when sqlstate in ('25006') then 3906
    when sqlstate in ('28000', '28P01') then 18456
    when sqlstate in ('34000') then 16917
    when sqlstate in ('3D000', '3F000') then 911
    when sqlstate in ('40001', '40P01') then 1205
    when sqlstate in ('42501') then 229
    when sqlstate in ('428C9') then 544
    when sqlstate in ('42P03') then 16905
    when sqlstate in ('42601') then 102
    when sqlstate in ('42702') then 209
    when sqlstate in ('42703') then 207
    when sqlstate in ('42710', '42723', '42P07') then 2714
    when sqlstate in ('42803') then 8120
    when sqlstate in ('42804', '42846') then 257
    when sqlstate in ('42883') then 2812
    when sqlstate in ('42P01') then 208
    when sqlstate in ('44000') then 550
    when sqlstate in ('53200') then 701
    when sqlstate in ('53100') then 1105
    when sqlstate in ('53300') then 17809
    when sqlstate in ('54001') then 217
    when sqlstate in ('55P03') then 1222
    when sqlstate in ('57014') then 3617
    when sqlstate in ('57P01') then 6005
    else 50000
  end
$$;
comment on function tsql.error_number(text) is
$$The number legacy code knows a SQLSTATE by; 50000 where it has none. S0245 is T-SQL's own 245.$$;

create or replace function tsql.message_forms()
returns table (state text, before text, after text, own text, words text)
language sql immutable
begin atomic
values
  ('0A000', 'unsupported XML feature', '', null, 'Values of type xml are not supported: this PostgreSQL was built without libxml.'),
  ('0A000', 'WITH CHECK OPTION is supported only on automatically updatable views', '', 'S4510', 'Could not perform CREATE VIEW because WITH CHECK OPTION was specified and the view is not updatable.'),
  ('0A000', 'cannot truncate a table referenced in a foreign key constraint', '', 'S4712', 'Cannot truncate the table because it is being referenced by a FOREIGN KEY constraint.'),
  ('0A000', 'DISTINCT is not implemented for window functions', '', 'S10759', 'Use of DISTINCT is not allowed with the OVER clause.'),
  ('0A000', 'cannot use subquery in check constraint', '', 'S1046', 'Subqueries are not allowed in this context. Only scalar expressions are allowed.'),
  ('0A000', 'cannot use subquery in DEFAULT expression', '', 'S1046', 'Subqueries are not allowed in this context. Only scalar expressions are allowed.'),
  ('0A000', 'cannot use subquery in column generation expression', '', 'S1046', 'Subqueries are not allowed in this context. Only scalar expressions are allowed.'),
  ('0A000', 'cannot use column reference in DEFAULT expression', '', 'S0128', 'The name is not permitted in this context. Valid expressions are constants, constant expressions, and (in some contexts) variables. Column names are not permitted.'),
  ('0A000', 'invalid UNION/INTERSECT/EXCEPT ORDER BY clause', '', 'S0104', 'ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.'),
  ('0A000', 'cannot update column "', '" of view "', 'S4406', 'Update or insert of a view failed because it contains a derived or constant field: column ''%''.'),
  ('0A000', 'cannot insert into column "', '" of view "', 'S4406', 'Update or insert of a view failed because it contains a derived or constant field: column ''%''.'),
  ('21000', 'more than one row returned by a subquery', '', null, 'Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.'),
  ('21000', 'MERGE command cannot affect row a second time', '', 'S8672', 'The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of the target table multiple times. Refine the ON clause to ensure a target row matches at most one source row, or use the GROUP BY clause to group the source rows.'),
  ('22001', 'value too long for type ', '', null, 'String or binary data would be truncated.'),
  ('22003', 'numeric field overflow', '', null, 'Arithmetic overflow error converting numeric to data type numeric.'),
  ('22003', '', ' is no number', 'S8023', null),
  ('23514', '', ' is no number', 'S8023', null),
  ('22003', 'bigint out of range', '', null, 'Arithmetic overflow error converting expression to data type bigint.'),
  ('22003', 'integer out of range', '', null, 'Arithmetic overflow error converting expression to data type int.'),
  ('22003', 'smallint out of range', '', null, 'Arithmetic overflow error converting expression to data type smallint.'),
  ('22003', 'value out of range: overflow', '', null, 'Arithmetic overflow error converting expression to data type float.'),
  ('22004', 'cursor variable "', '" is null', 'S16917', 'Cursor is not open.'),
  ('22012', 'division by zero', '', null, 'Divide by zero error encountered.'),
  ('22014', 'argument of ntile must be greater than zero', '', 'S4116', 'The function ''ntile'' takes only a positive int or bigint expression as its input.'),
  ('2201F', 'a negative number raised to a non-integer power', '', 'S3623', 'An invalid floating point operation occurred.'),
  ('2201F', 'zero raised to a negative power', '', 'S8134', 'Divide by zero error encountered.'),
  ('2200H', 'nextval: reached ', '', null, 'Arithmetic overflow error converting IDENTITY to the data type of its column.'),
  ('23502', 'null value in column "', '"', null, 'Cannot insert the value NULL into column ''%''; column does not allow nulls.'),
  ('23505', 'could not create unique index', '', 'S1505', null),
  ('23514', 'value for domain tsql.usmallint violates', '', null, 'Arithmetic overflow during implicit conversion to a UNSIGNED SMALLINT field.'),
  ('23514', 'value for domain tsql.uint violates', '', null, 'Arithmetic overflow during implicit conversion to a UNSIGNED INT field.'),
  ('23514', 'value for domain tsql.ubigint violates', '', null, 'Arithmetic overflow during implicit conversion to a UNSIGNED BIGINT field.'),
  ('23514', 'value for domain tsql.tinyint violates', '', null, 'Arithmetic overflow error for data type tinyint.'),
  ('23514', 'value for domain tsql.money violates', '', null, 'Arithmetic overflow error converting expression to data type money.'),
  ('23514', 'value for domain tsql.smallmoney violates', '', null, 'Arithmetic overflow error converting expression to data type smallmoney.'),
  ('34000', 'cursor "', '" does not exist', null, 'Cursor is not open.'),
  ('23514', 'check constraint "', '" of relation "', 'S0547', 'The ALTER TABLE statement conflicted with the CHECK constraint "%".'),
  ('2BP01', 'cannot drop table ', ' because other objects depend on it', 'S3726', 'Could not drop object ''%'' because it is referenced by a FOREIGN KEY constraint or a view.'),
  ('2BP01', 'cannot drop view ', ' because other objects depend on it', 'S3729', 'Cannot drop the view ''%'' because it is being referenced by another object.'),
  ('2BP01', 'cannot drop function ', ' because other objects depend on it', 'S3729', 'Cannot drop the function ''%'' because it is being referenced by another object.'),
  ('42710', 'type "', '" already exists', 'S2714', 'There is already an object named ''%'' in the database.'),
  ('42710', 'constraint "', '" for relation "', 'S2714', 'There is already an object named ''%'' in the database.'),
  ('42883', 'procedure ', '(', 'S2812', 'Could not find stored procedure ''%''.'),
  ('42P17', 'generation expression is not immutable', '', 'S4936', 'A computed column cannot be persisted because the column is non-deterministic.'),
  ('55006', 'cannot DROP TABLE "', '" because it is being used', 'S3702', 'Cannot drop the table ''%'' because it is currently in use.'),
  ('55000', 'cannot update view "', '". Views that do not select from a single', 'S4405', 'View or function ''%'' is not updatable because the modification affects multiple base tables.'),
  ('55000', 'cannot insert into view "', '". Views that do not select from a single', 'S4405', 'View or function ''%'' is not updatable because the modification affects multiple base tables.'),
  ('55000', 'cannot delete from view "', '". Views that do not select from a single', 'S4405', 'View or function ''%'' is not updatable because the modification affects multiple base tables.'),
  ('55000', 'cannot update view "', '". Views ', 'S4403', 'Cannot update the view or function ''%'' because it contains aggregates, or a DISTINCT or GROUP BY clause.'),
  ('55000', 'cannot insert into view "', '". Views ', 'S4403', 'Cannot update the view or function ''%'' because it contains aggregates, or a DISTINCT or GROUP BY clause.'),
  ('55000', 'cannot delete from view "', '". Views ', 'S4403', 'Cannot update the view or function ''%'' because it contains aggregates, or a DISTINCT or GROUP BY clause.'),
  ('44000', 'new row violates check option', '', null, 'The attempted insert or update failed because the target view either specifies WITH CHECK OPTION or spans a view that specifies WITH CHECK OPTION and one or more rows resulting from the operation did not qualify under the CHECK OPTION constraint.'),
  ('54001', 'stack depth limit exceeded', '', null, 'Maximum stored procedure, function, trigger, or view nesting level exceeded.'),
  ('428C9', 'computed: cannot insert a non-DEFAULT value into column "', '"', 'S0271', 'The column "%" cannot be modified because it is either a computed column or is the result of a UNION operator.'),
  ('428C9', 'computed: column "', '" can only be updated to DEFAULT', 'S0271', 'The column "%" cannot be modified because it is either a computed column or is the result of a UNION operator.'),
  ('428C9', 'cannot insert a non-DEFAULT value into column "', '"', null, 'Cannot insert explicit value for identity column when IDENTITY_INSERT is set to OFF.'),
  ('428C9', 'column "', '" can only be updated to DEFAULT', 'S8102', 'Cannot update identity column ''%''.'),
  ('42601', 'both default and identity specified for column "', '"', 'S1754', 'Defaults cannot be created on columns with an IDENTITY attribute. Column ''%''.'),
  ('42601', 'each ', ' query must have the same number of columns', 'S0205', 'All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.'),
  ('42601', 'INSERT has more expressions than target columns', '', 'S0213', 'Column name or number of supplied values does not match table definition.'),
  ('42601', 'zero-length delimited identifier', '', 'S1038', 'An object or column name is missing or empty. Aliases defined as "" or [] are not allowed.'),
  ('42611', 'computed: cannot specify USING when altering type of generated column', '', 'S4928', 'Cannot alter a column that is ''COMPUTED''.'),
  ('42701', 'column "', '" appears twice in', 'S1909', 'Cannot use duplicate column names in index. Column name ''%'' listed more than once.'),
  ('42701', 'column "', '" specified more than once', 'S0264', 'The column name ''%'' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause.'),
  ('42701', 'column "', '" of relation "', 'S2705', 'Column names in each table must be unique. Column name ''%'' is specified more than once.'),
  ('42702', 'column reference "', '" is ambiguous', null, 'Ambiguous column name ''%''.'),
  ('42703', 'column "', '" named in key does not exist', 'S1911', 'Column name ''%'' does not exist in the target table or view.'),
  ('42703', 'column "', '"', null, 'Invalid column name ''%''.'),
  ('42703', 'column ', ' does not exist', null, 'Invalid column name ''^''.'),
  ('42704', 'trigger "', '" for table "', 'S4920', 'ALTER TABLE failed because trigger ''%'' on the table does not exist.'),
  ('42704', 'index "', '" does not exist', 'S3701', 'Cannot drop the index ''%'', because it does not exist or you do not have permission.'),
  ('42704', 'constraint "', '" of relation "', 'S3728', '''%'' is not a constraint.'),
  ('42704', 'constraint "', '', 'S3728', null),
  ('42704', 'type "tsql.ci_', '" does not exist', 'S0102', 'A collation without case is not supported here: it needs PostgreSQL 18, and a superuser as the installer.'),
  ('42712', 'table name "', '"', 'S1011', 'The correlation name ''%'' is specified multiple times in a FROM clause.'),
  ('42712', 'WITH query name "', '" specified more than once', 'S0239', 'Duplicate common table expression name ''%'' was specified.'),
  ('42725', 'operator is not unique', '', 'S8117', null),
  ('42803', 'aggregate function calls cannot be nested', '', 'S0130', 'Cannot perform an aggregate function on an expression containing an aggregate or a subquery.'),
  ('42803', 'arguments to GROUPING must be grouping expressions', '', 'S8161', 'An argument of the GROUPING function does not match any of the expressions in the GROUP BY clause.'),
  ('42803', 'aggregate functions are not allowed in WHERE', '', 'S0147', 'An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.'),
  ('42803', 'aggregate functions are not allowed in GROUP BY', '', 'S0144', 'Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY clause.'),
  ('42803', 'column "', '" must appear in the GROUP BY clause', null, 'Column ''%'' is invalid because it is not contained in either an aggregate function or the GROUP BY clause.'),
  ('42830', 'there is no unique constraint matching given keys for referenced table "', '"', 'S1776', 'There are no primary or candidate keys in the referenced table ''%'' that match the referencing column list in the foreign key.'),
  ('42830', 'number of referencing and referenced columns for foreign key disagree', '', 'S8139', 'Number of referencing columns in foreign key differs from number of referenced columns.'),
  ('42804', 'foreign key constraint "', '" cannot be implemented', 'S1778', null),
  ('42804', 'column "', '" is of type ', null, 'Implicit conversion to the data type of column ''%'' is not allowed. Use the CONVERT function to run this query.'),
  ('42804', 'recursive query "', '"', 'S0240', 'Types don''t match between the anchor and the recursive part of a recursive query.'),
  ('42809', 'cannot open relation "', '"', 'S11726', 'Object ''%'' is not a sequence object.'),
  ('42809', 'cannot create index on relation "', '"', 'S1939', 'Cannot create index on view ''%'' because the view is not schema bound.'),
  ('42809', '"', '" is not a table', 'S4708', 'Could not truncate object ''%'' because it is not a table.'),
  ('42809', 'ALTER action ', ' cannot be performed on relation "', 'S4909', 'Cannot alter the object because it is not a table.'),
  ('42804', 'UNION types ', ' cannot be matched', null, 'A UNION, INTERSECT or EXCEPT of columns of different types (%) is not supported where these are not known before: convert one of them.'),
  ('42804', 'INTERSECT types ', ' cannot be matched', null, 'A UNION, INTERSECT or EXCEPT of columns of different types (%) is not supported where these are not known before: convert one of them.'),
  ('42804', 'EXCEPT types ', ' cannot be matched', null, 'A UNION, INTERSECT or EXCEPT of columns of different types (%) is not supported where these are not known before: convert one of them.'),
  ('42883', 'function tsql.sum(', ')', 'S8117', 'Operand data type is invalid for sum operator.'),
  ('42883', 'function tsql.avg(', ')', 'S8117', 'Operand data type is invalid for avg operator.'),
  ('42883', 'function tsql.min(', ')', 'S8117', 'Operand data type is invalid for min operator.'),
  ('42883', 'function tsql.max(', ')', 'S8117', 'Operand data type is invalid for max operator.'),
  ('42883', 'function tsql.divided(', '', 'S0402', 'The data types of the operands are incompatible in the divide operator.'),
  ('42883', 'function tsql.', '(', 'S8116', 'An argument of the % function has a data type that is invalid for it.'),
  ('42883', 'operator does not exist: - ', '', 'S8117', 'Operand data type is invalid for minus operator.'),
  ('42883', 'operator does not exist: tsql.- ', '', 'S8117', 'Operand data type is invalid for minus operator.'),
  ('42883', 'operator does not exist', '', 'S0402', null),
  ('42883', 'function ', '(', 'S0195', '''%'' is not a recognized built-in function name, nor is there a function of this name that takes these arguments.'),
  ('42P01', 'relation "pg_temp.', '" does not exist', null, 'Invalid object name ''%''.'),
  ('42P01', 'relation "', '" does not exist', null, 'Invalid object name ''%''.'),
  ('3F000', 'schema "', '" does not exist', null, 'Database ''%'' does not exist. Make sure that the name is entered correctly.'),
  ('3F000', 'Database ''', ''' does not exist.', null, 'Database ''%'' does not exist. Make sure that the name is entered correctly.'),
  ('3F000', 'Could not locate entry in sysdatabases for database ''', '''. No entry', null, 'Database ''%'' does not exist. Make sure that the name is entered correctly.'),
  ('42P01', 'missing FROM-clause entry for table "', '"', 'S4104', 'The multi-part identifier "%" could not be bound.'),
  ('42P01', 'invalid reference to FROM-clause entry for table "', '"', 'S4104', 'The multi-part identifier "%" could not be bound.'),
  ('42P07', 'relation "', '" already exists', null, 'There is already an object named ''%'' in the database.'),
  ('42P10', 'ORDER BY position ', ' ', 'S0108', 'The ORDER BY position number % is out of range of the number of items in the select list.'),
  ('42P10', 'for SELECT DISTINCT, ORDER BY expressions must appear in select list', '', 'S0145', 'ORDER BY items must appear in the select list if SELECT DISTINCT is specified.'),
  ('42P16', 'multiple primary keys for table "', '"', 'S1779', 'Table ''%'' already has a primary key defined on it.'),
  ('42P16', 'column "', '" is in a primary key', 'S5074', 'The primary key is dependent on column ''%''.'),
  ('42P20', 'frame ', '', 'S4193', 'The rows between these bounds are not a valid window frame and cannot be used with the OVER clause.'),
  ('42P20', 'window functions are not allowed in', '', 'S4108', 'Windowed functions can only appear in the SELECT or ORDER BY clauses.');
end;
comment on function tsql.message_forms() is
$$PostgreSQL's errors that have a number or words of T-SQL's: the SQLSTATE, what is before and after the name in the text, the
SQLSTATE of T-SQL's number, T-SQL's words, in which % is the name and ^ its last part.$$;

create or replace function tsql.forms_of(sqlstate text, message text)
returns table (index bigint, own text, words text, name text)
language sql immutable
as $$
  select form.index, form.own, form.words, case form.after when '' then '' else split_part(rest, form.after, 1) end
  from tsql.message_forms() with ordinality as form (state, before, after, own, words, index)
  cross join lateral substr(message, length(form.before) + 1) as rest
  where (form.state = sqlstate or sqlstate ~ '^S\d{4,5}$')
    and starts_with(message, form.before) and strpos(rest, form.after) > 0
    and (form.before <> 'function ' or strpos(split_part(message, '(', 1), '.') = 0)
$$;
comment on function tsql.forms_of(text, text) is
$$The forms that an error's text has, of which the first applies, and the name in it. A SQLSTATE of T-SQL's number has those
of any.$$;

create or replace function tsql.own_state(sqlstate text, message text, table_ text, constraint_ text, sybase boolean)
returns text
language sql immutable
as $$
  select coalesce(
    case when sqlstate !~ '^S' then
      (select own from tsql.forms_of(sqlstate, message) where own is not null order by index limit 1) end,
    case
      when constraint_ = 'money_range' then 'S8115'
      when constraint_ = 'smallmoney_range' then 'S8115'
      when constraint_ = 'tinyint_range' then 'S0220'
      when constraint_ = 'usmallint_range' then 'S0247'
      when constraint_ = 'uint_range' then 'S0247'
      when constraint_ = 'ubigint_range' then 'S0247'
      when not sybase and sqlstate = '23505' and constraint_ <> ''
          and not starts_with(constraint_, table_ || '.')
        then 'S2627'
      else sqlstate
    end)
$$;
comment on function tsql.own_state(text, text, text, text, boolean) is
$$A SQLSTATE, or that of a number T-SQL has for an error of this text or constraint: a row that MERGE meets twice, an
operator that there is none of, a value beyond a type, and, unless in ASE, a row that is there already by a key or a
UNIQUE constraint. Indexes that T-SQL has made are named by their table first.$$;

create or replace function tsql.own_message(sqlstate text, message text) returns text
language sql immutable
as $$
  select case when strpos(words, '^') > 0 then replace(words, '^', trim(both '"' from regexp_replace(name, '^.*\.', '')))
    else replace(words, '%', name) end
  from tsql.forms_of(sqlstate, message)
  where words is not null
  order by index
  limit 1
$$;
comment on function tsql.own_message(text, text) is
$$What T-SQL says where PostgreSQL has said this; null where it has no words of its own. sqlstate: also that of
tsql.own_state.$$;

create or replace function tsql.number_in_ase(number integer) returns integer
language sql immutable
as $$
  select case number
    when 251 then 241
    when 1779 then 8110
    when 2627 then 2601
    when 15009 then 17461
    when 15250 then 17460
    else number
  end
$$;
comment on function tsql.number_in_ase(integer) is $$ASE's number for an error of T-SQL's own.$$;

create or replace function tsql.error_severity(number integer) returns integer
language sql immutable
as $$
  select case number
    when 2601 then 14
    when 18456 then 14
    when 1205 then 13
    when 229 then 14
    when 102 then 15
    when 701 then 17
    when 1105 then 17
    when 17809 then 20
    when 3617 then 11
    when 2627 then 14
    else 16
  end
$$;
comment on function tsql.error_severity(integer) is 'The severity of an error that PostgreSQL has raised.';

create or replace function tsql.ends_more(number integer) returns boolean
language sql immutable
as $$
  select number <@ '{[100,199],[206,209],[213,213],[217,217],[241,241],[244,245],[248,248],[257,257],[260,260],[295,295],[701,701],[911,911],[1014,1014],[1031,1031],[1205,1205],[2715,2716],[3609,3609],[3616,3616],[3930,3930],[4104,4108],[8114,8114],[8116,8117],[8120,8127],[8169,8169],[8623,8624]}'::int4multirange
$$;
comment on function tsql.ends_more(integer) is $$Whether an error of T-SQL's own ends more than its statement.$$;

create or replace function tsql.ends_its_transaction(number integer) returns boolean
language sql immutable
as $$
  select number <@ '{[241,241],[244,245],[248,248],[295,295],[1205,1205],[3609,3609],[3616,3616],[8114,8114],[8169,8169]}'::int4multirange
$$;
comment on function tsql.ends_its_transaction(integer) is
'Whether an error would end the transaction outside of a TRY block.';

create or replace function tsql.ends_its_statement(sqlstate text, detail text) returns boolean
language sql immutable
as $$
  select case
    -- THROW ends everything; what is wrong with a call only the call
    when sqlstate = 'TS001' then split_part(detail, ' ', 1)::integer < 50000
      and split_part(detail, ' ', 2)::integer < 20
      and not tsql.ends_its_transaction(split_part(detail, ' ', 1)::integer)
    when sqlstate ~ '^S\d{4,5}$' then not tsql.ends_more(substr(sqlstate, 2)::integer)
    when sqlstate in ('22007', '22008', '22023', '22P02', '22P03', '3D000', '3F000', '40001', '40P01', '42601', '42702', '42703', '42803', '42804', '42846', '42883', '42P01', '53200', '54001', '57014', '57P01') then false
    when sqlstate in ('21000', '22001', '22003', '2200H', '22012', '23502', '23503', '23514', '23P01', '23505', '25006', '28000', '28P01', '34000', '42501', '428C9', '42P03', '42710', '42723', '42P07', '44000', '53100', '53300', '55P03') then true
    else sqlstate not like '42%'
  end
$$;
comment on function tsql.ends_its_statement(text, text) is
$$Whether an error ends its statement only, so that a procedure goes on after it: constraints, duplicate keys,
numbers and texts that do not fit, division by zero, missing rights, errors that a called function raises. Others
(no such object, a text that is no number, a deadlock, THROW) end the batch, in T-SQL as here. detail: of TS001.$$;

create or replace function tsql.is_arithmetic(sqlstate text, message text, table_ text, constraint_ text) returns boolean
language sql stable
as $$
  select tsql.error_number(tsql.own_state(sqlstate, message, table_, constraint_, true)) in (220, 247, 3623, 8115, 8134)
    and current_setting('tsql.arith_overflow', true) is distinct from 'off'
$$;
comment on function tsql.is_arithmetic(text, text, text, text) is
$$Whether an error is an overflow, a division by zero or a domain error, which in ASE ends the batch and its transaction
unless set arithabort arith_overflow is off.$$;

create or replace function tsql.ends_its_batch(sqlstate text) returns boolean
language sql immutable
as $$
  select sqlstate in ('40001', '40P01')
    or (sqlstate like '42%' and sqlstate not in ('21000', '22001', '22003', '2200H', '22012', '23502', '23503', '23514', '23P01', '23505', '25006', '28000', '28P01', '34000', '42501', '428C9', '42P03', '42710', '42723', '42P07', '44000', '53100', '53300', '55P03'))
$$;
comment on function tsql.ends_its_batch(text) is
$$Whether an error is none for the CATCH block beside it: a deadlock, whose victim is the whole transaction, and
names that are wrong, which T-SQL finds before it runs anything.$$;
