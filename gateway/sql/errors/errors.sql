-- Made from gateway/tsql/src/facts/errors.rs, where these facts stand: UPDATE_CASES=1 cargo test -p tsql --test facts
-- writes this file anew.

create or replace function tsql.error_number(sqlstate text)
returns integer
language sql
immutable
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


create or replace function tsql.own_state(sqlstate text, message text, table_ text, constraint_ text, sybase boolean)
returns text
language sql
immutable
as $$
  select case
    when sqlstate = '0A000' and starts_with(message, 'WITH CHECK OPTION is supported only on automatically updatable views') then 'S4510'
    when sqlstate = '0A000' and starts_with(message, 'cannot truncate a table referenced in a foreign key constraint') then 'S4712'
    when sqlstate = '0A000' and starts_with(message, 'DISTINCT is not implemented for window functions') then 'S10759'
    when sqlstate = '0A000' and starts_with(message, 'cannot use subquery in check constraint') then 'S1046'
    when sqlstate = '0A000' and starts_with(message, 'cannot use subquery in DEFAULT expression') then 'S1046'
    when sqlstate = '0A000' and starts_with(message, 'cannot use subquery in column generation expression') then 'S1046'
    when sqlstate = '0A000' and starts_with(message, 'cannot use column reference in DEFAULT expression') then 'S0128'
    when sqlstate = '0A000' and starts_with(message, 'invalid UNION/INTERSECT/EXCEPT ORDER BY clause') then 'S0104'
    when sqlstate = '0A000' and starts_with(message, 'cannot update column "') and strpos(substr(message, 23), '" of view "') > 0 then 'S4406'
    when sqlstate = '0A000' and starts_with(message, 'cannot insert into column "') and strpos(substr(message, 28), '" of view "') > 0 then 'S4406'
    when sqlstate = '21000' and starts_with(message, 'MERGE command cannot affect row a second time') then 'S8672'
    when sqlstate = '22003' and starts_with(message, '') and strpos(substr(message, 1), ' is no number') > 0 then 'S8023'
    when sqlstate = '23514' and starts_with(message, '') and strpos(substr(message, 1), ' is no number') > 0 then 'S8023'
    when sqlstate = '22004' and starts_with(message, 'cursor variable "') and strpos(substr(message, 18), '" is null') > 0 then 'S16917'
    when sqlstate = '22014' and starts_with(message, 'argument of ntile must be greater than zero') then 'S4116'
    when sqlstate = '2201F' and starts_with(message, 'a negative number raised to a non-integer power') then 'S3623'
    when sqlstate = '2201F' and starts_with(message, 'zero raised to a negative power') then 'S8134'
    when sqlstate = '23505' and starts_with(message, 'could not create unique index') then 'S1505'
    when sqlstate = '23514' and starts_with(message, 'check constraint "') and strpos(substr(message, 19), '" of relation "') > 0 then 'S0547'
    when sqlstate = '2BP01' and starts_with(message, 'cannot drop table ') and strpos(substr(message, 19), ' because other objects depend on it') > 0 then 'S3726'
    when sqlstate = '2BP01' and starts_with(message, 'cannot drop view ') and strpos(substr(message, 18), ' because other objects depend on it') > 0 then 'S3729'
    when sqlstate = '2BP01' and starts_with(message, 'cannot drop function ') and strpos(substr(message, 22), ' because other objects depend on it') > 0 then 'S3729'
    when sqlstate = '42710' and starts_with(message, 'type "') and strpos(substr(message, 7), '" already exists') > 0 then 'S2714'
    when sqlstate = '42710' and starts_with(message, 'constraint "') and strpos(substr(message, 13), '" for relation "') > 0 then 'S2714'
    when sqlstate = '42883' and starts_with(message, 'procedure ') and strpos(substr(message, 11), '(') > 0 then 'S2812'
    when sqlstate = '42P17' and starts_with(message, 'generation expression is not immutable') then 'S4936'
    when sqlstate = '55006' and starts_with(message, 'cannot DROP TABLE "') and strpos(substr(message, 20), '" because it is being used') > 0 then 'S3702'
    when sqlstate = '55000' and starts_with(message, 'cannot update view "') and strpos(substr(message, 21), '". Views that do not select from a single') > 0 then 'S4405'
    when sqlstate = '55000' and starts_with(message, 'cannot insert into view "') and strpos(substr(message, 26), '". Views that do not select from a single') > 0 then 'S4405'
    when sqlstate = '55000' and starts_with(message, 'cannot delete from view "') and strpos(substr(message, 26), '". Views that do not select from a single') > 0 then 'S4405'
    when sqlstate = '55000' and starts_with(message, 'cannot update view "') and strpos(substr(message, 21), '". Views ') > 0 then 'S4403'
    when sqlstate = '55000' and starts_with(message, 'cannot insert into view "') and strpos(substr(message, 26), '". Views ') > 0 then 'S4403'
    when sqlstate = '55000' and starts_with(message, 'cannot delete from view "') and strpos(substr(message, 26), '". Views ') > 0 then 'S4403'
    when sqlstate = '428C9' and starts_with(message, 'computed: cannot insert a non-DEFAULT value into column "') and strpos(substr(message, 58), '"') > 0 then 'S0271'
    when sqlstate = '428C9' and starts_with(message, 'computed: column "') and strpos(substr(message, 19), '" can only be updated to DEFAULT') > 0 then 'S0271'
    when sqlstate = '428C9' and starts_with(message, 'column "') and strpos(substr(message, 9), '" can only be updated to DEFAULT') > 0 then 'S8102'
    when sqlstate = '42601' and starts_with(message, 'both default and identity specified for column "') and strpos(substr(message, 49), '"') > 0 then 'S1754'
    when sqlstate = '42601' and starts_with(message, 'each ') and strpos(substr(message, 6), ' query must have the same number of columns') > 0 then 'S0205'
    when sqlstate = '42601' and starts_with(message, 'INSERT has more expressions than target columns') then 'S0213'
    when sqlstate = '42601' and starts_with(message, 'zero-length delimited identifier') then 'S1038'
    when sqlstate = '42611' and starts_with(message, 'computed: cannot specify USING when altering type of generated column') then 'S4928'
    when sqlstate = '42701' and starts_with(message, 'column "') and strpos(substr(message, 9), '" appears twice in') > 0 then 'S1909'
    when sqlstate = '42701' and starts_with(message, 'column "') and strpos(substr(message, 9), '" specified more than once') > 0 then 'S0264'
    when sqlstate = '42701' and starts_with(message, 'column "') and strpos(substr(message, 9), '" of relation "') > 0 then 'S2705'
    when sqlstate = '42703' and starts_with(message, 'column "') and strpos(substr(message, 9), '" named in key does not exist') > 0 then 'S1911'
    when sqlstate = '42704' and starts_with(message, 'trigger "') and strpos(substr(message, 10), '" for table "') > 0 then 'S4920'
    when sqlstate = '42704' and starts_with(message, 'index "') and strpos(substr(message, 8), '" does not exist') > 0 then 'S3701'
    when sqlstate = '42704' and starts_with(message, 'constraint "') and strpos(substr(message, 13), '" of relation "') > 0 then 'S3728'
    when sqlstate = '42704' and starts_with(message, 'constraint "') then 'S3728'
    when sqlstate = '42704' and starts_with(message, 'type "tsql.ci_') and strpos(substr(message, 15), '" does not exist') > 0 then 'S0102'
    when sqlstate = '42712' and starts_with(message, 'table name "') and strpos(substr(message, 13), '"') > 0 then 'S1011'
    when sqlstate = '42712' and starts_with(message, 'WITH query name "') and strpos(substr(message, 18), '" specified more than once') > 0 then 'S0239'
    when sqlstate = '42725' and starts_with(message, 'operator is not unique') then 'S8117'
    when sqlstate = '42803' and starts_with(message, 'aggregate function calls cannot be nested') then 'S0130'
    when sqlstate = '42803' and starts_with(message, 'arguments to GROUPING must be grouping expressions') then 'S8161'
    when sqlstate = '42803' and starts_with(message, 'aggregate functions are not allowed in WHERE') then 'S0147'
    when sqlstate = '42803' and starts_with(message, 'aggregate functions are not allowed in GROUP BY') then 'S0144'
    when sqlstate = '42830' and starts_with(message, 'there is no unique constraint matching given keys for referenced table "') and strpos(substr(message, 73), '"') > 0 then 'S1776'
    when sqlstate = '42830' and starts_with(message, 'number of referencing and referenced columns for foreign key disagree') then 'S8139'
    when sqlstate = '42804' and starts_with(message, 'foreign key constraint "') and strpos(substr(message, 25), '" cannot be implemented') > 0 then 'S1778'
    when sqlstate = '42804' and starts_with(message, 'recursive query "') and strpos(substr(message, 18), '"') > 0 then 'S0240'
    when sqlstate = '42809' and starts_with(message, 'cannot open relation "') and strpos(substr(message, 23), '"') > 0 then 'S11726'
    when sqlstate = '42809' and starts_with(message, 'cannot create index on relation "') and strpos(substr(message, 34), '"') > 0 then 'S1939'
    when sqlstate = '42809' and starts_with(message, '"') and strpos(substr(message, 2), '" is not a table') > 0 then 'S4708'
    when sqlstate = '42809' and starts_with(message, 'ALTER action ') and strpos(substr(message, 14), ' cannot be performed on relation "') > 0 then 'S4909'
    when sqlstate = '42883' and starts_with(message, 'function tsql.sum(') and strpos(substr(message, 19), ')') > 0 then 'S8117'
    when sqlstate = '42883' and starts_with(message, 'function tsql.avg(') and strpos(substr(message, 19), ')') > 0 then 'S8117'
    when sqlstate = '42883' and starts_with(message, 'function tsql.min(') and strpos(substr(message, 19), ')') > 0 then 'S8117'
    when sqlstate = '42883' and starts_with(message, 'function tsql.max(') and strpos(substr(message, 19), ')') > 0 then 'S8117'
    when sqlstate = '42883' and starts_with(message, 'function tsql.divided(') then 'S0402'
    when sqlstate = '42883' and starts_with(message, 'function tsql.') and strpos(substr(message, 15), '(') > 0 then 'S8116'
    when sqlstate = '42883' and starts_with(message, 'operator does not exist: - ') then 'S8117'
    when sqlstate = '42883' and starts_with(message, 'operator does not exist: tsql.- ') then 'S8117'
    when sqlstate = '42883' and starts_with(message, 'operator does not exist') then 'S0402'
    when sqlstate = '42883' and starts_with(message, 'function ') and strpos(split_part(message, '(', 1), '.') = 0 and strpos(substr(message, 10), '(') > 0 then 'S0195'
    when sqlstate = '42P01' and starts_with(message, 'missing FROM-clause entry for table "') and strpos(substr(message, 38), '"') > 0 then 'S4104'
    when sqlstate = '42P01' and starts_with(message, 'invalid reference to FROM-clause entry for table "') and strpos(substr(message, 51), '"') > 0 then 'S4104'
    when sqlstate = '42P10' and starts_with(message, 'ORDER BY position ') and strpos(substr(message, 19), ' ') > 0 then 'S0108'
    when sqlstate = '42P10' and starts_with(message, 'for SELECT DISTINCT, ORDER BY expressions must appear in select list') then 'S0145'
    when sqlstate = '42P16' and starts_with(message, 'multiple primary keys for table "') and strpos(substr(message, 34), '"') > 0 then 'S8110'
    when sqlstate = '42P16' and starts_with(message, 'column "') and strpos(substr(message, 9), '" is in a primary key') > 0 then 'S5074'
    when sqlstate = '42P20' and starts_with(message, 'frame ') then 'S4193'
    when sqlstate = '42P20' and starts_with(message, 'window functions are not allowed in') then 'S4108'
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
  end
$$;

comment on function tsql.own_state(text, text, text, text, boolean) is
$$A SQLSTATE, or that of a number T-SQL has for an error of this text or constraint: a row that MERGE meets twice, an
operator that there is none of, a value beyond a type, and, unless in ASE, a row that is there already by a key or a
UNIQUE constraint. Indexes that T-SQL has made are named by their table first.$$;

create or replace function tsql.own_message(sqlstate text, message text)
returns text
language sql
immutable
as $$
  select case
    when sqlstate in ('0A000', own) and starts_with(message, 'unsupported XML feature')
      then replace('Values of type xml are not supported: this PostgreSQL was built without libxml.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'WITH CHECK OPTION is supported only on automatically updatable views')
      then replace('Could not perform CREATE VIEW because WITH CHECK OPTION was specified and the view is not updatable.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'cannot truncate a table referenced in a foreign key constraint')
      then replace('Cannot truncate the table because it is being referenced by a FOREIGN KEY constraint.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'DISTINCT is not implemented for window functions')
      then replace('Use of DISTINCT is not allowed with the OVER clause.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'cannot use subquery in check constraint')
      then replace('Subqueries are not allowed in this context. Only scalar expressions are allowed.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'cannot use subquery in DEFAULT expression')
      then replace('Subqueries are not allowed in this context. Only scalar expressions are allowed.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'cannot use subquery in column generation expression')
      then replace('Subqueries are not allowed in this context. Only scalar expressions are allowed.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'cannot use column reference in DEFAULT expression')
      then replace('The name is not permitted in this context. Valid expressions are constants, constant expressions, and (in some contexts) variables. Column names are not permitted.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'invalid UNION/INTERSECT/EXCEPT ORDER BY clause')
      then replace('ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.', '%', '')
    when sqlstate in ('0A000', own) and starts_with(message, 'cannot update column "') and strpos(substr(message, 23), '" of view "') > 0
      then replace('Update or insert of a view failed because it contains a derived or constant field: column ''%''.', '%', split_part(substr(message, 23), '" of view "', 1))
    when sqlstate in ('0A000', own) and starts_with(message, 'cannot insert into column "') and strpos(substr(message, 28), '" of view "') > 0
      then replace('Update or insert of a view failed because it contains a derived or constant field: column ''%''.', '%', split_part(substr(message, 28), '" of view "', 1))
    when sqlstate in ('21000', own) and starts_with(message, 'more than one row returned by a subquery')
      then replace('Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.', '%', '')
    when sqlstate in ('21000', own) and starts_with(message, 'MERGE command cannot affect row a second time')
      then replace('The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of the target table multiple times. Refine the ON clause to ensure a target row matches at most one source row, or use the GROUP BY clause to group the source rows.', '%', '')
    when sqlstate in ('22001', own) and starts_with(message, 'value too long for type ')
      then replace('String or binary data would be truncated.', '%', '')
    when sqlstate in ('22003', own) and starts_with(message, 'numeric field overflow')
      then replace('Arithmetic overflow error converting numeric to data type numeric.', '%', '')
    when sqlstate in ('22003', own) and starts_with(message, 'bigint out of range')
      then replace('Arithmetic overflow error converting expression to data type bigint.', '%', '')
    when sqlstate in ('22003', own) and starts_with(message, 'integer out of range')
      then replace('Arithmetic overflow error converting expression to data type int.', '%', '')
    when sqlstate in ('22003', own) and starts_with(message, 'smallint out of range')
      then replace('Arithmetic overflow error converting expression to data type smallint.', '%', '')
    when sqlstate in ('22003', own) and starts_with(message, 'value out of range: overflow')
      then replace('Arithmetic overflow error converting expression to data type float.', '%', '')
    when sqlstate in ('22004', own) and starts_with(message, 'cursor variable "') and strpos(substr(message, 18), '" is null') > 0
      then replace('Cursor is not open.', '%', split_part(substr(message, 18), '" is null', 1))
    when sqlstate in ('22012', own) and starts_with(message, 'division by zero')
      then replace('Divide by zero error encountered.', '%', '')
    when sqlstate in ('22014', own) and starts_with(message, 'argument of ntile must be greater than zero')
      then replace('The function ''ntile'' takes only a positive int or bigint expression as its input.', '%', '')
    when sqlstate in ('2201F', own) and starts_with(message, 'a negative number raised to a non-integer power')
      then replace('An invalid floating point operation occurred.', '%', '')
    when sqlstate in ('2201F', own) and starts_with(message, 'zero raised to a negative power')
      then replace('Divide by zero error encountered.', '%', '')
    when sqlstate in ('2200H', own) and starts_with(message, 'nextval: reached ')
      then replace('Arithmetic overflow error converting IDENTITY to the data type of its column.', '%', '')
    when sqlstate in ('23502', own) and starts_with(message, 'null value in column "') and strpos(substr(message, 23), '"') > 0
      then replace('Cannot insert the value NULL into column ''%''; column does not allow nulls.', '%', split_part(substr(message, 23), '"', 1))
    when sqlstate in ('23514', own) and starts_with(message, 'value for domain tsql.usmallint violates')
      then replace('Arithmetic overflow during implicit conversion to a UNSIGNED SMALLINT field.', '%', '')
    when sqlstate in ('23514', own) and starts_with(message, 'value for domain tsql.uint violates')
      then replace('Arithmetic overflow during implicit conversion to a UNSIGNED INT field.', '%', '')
    when sqlstate in ('23514', own) and starts_with(message, 'value for domain tsql.ubigint violates')
      then replace('Arithmetic overflow during implicit conversion to a UNSIGNED BIGINT field.', '%', '')
    when sqlstate in ('23514', own) and starts_with(message, 'value for domain tsql.tinyint violates')
      then replace('Arithmetic overflow error for data type tinyint.', '%', '')
    when sqlstate in ('23514', own) and starts_with(message, 'value for domain tsql.money violates')
      then replace('Arithmetic overflow error converting expression to data type money.', '%', '')
    when sqlstate in ('23514', own) and starts_with(message, 'value for domain tsql.smallmoney violates')
      then replace('Arithmetic overflow error converting expression to data type smallmoney.', '%', '')
    when sqlstate in ('34000', own) and starts_with(message, 'cursor "') and strpos(substr(message, 9), '" does not exist') > 0
      then replace('Cursor is not open.', '%', split_part(substr(message, 9), '" does not exist', 1))
    when sqlstate in ('23514', own) and starts_with(message, 'check constraint "') and strpos(substr(message, 19), '" of relation "') > 0
      then replace('The ALTER TABLE statement conflicted with the CHECK constraint "%".', '%', split_part(substr(message, 19), '" of relation "', 1))
    when sqlstate in ('2BP01', own) and starts_with(message, 'cannot drop table ') and strpos(substr(message, 19), ' because other objects depend on it') > 0
      then replace('Could not drop object ''%'' because it is referenced by a FOREIGN KEY constraint or a view.', '%', split_part(substr(message, 19), ' because other objects depend on it', 1))
    when sqlstate in ('2BP01', own) and starts_with(message, 'cannot drop view ') and strpos(substr(message, 18), ' because other objects depend on it') > 0
      then replace('Cannot drop the view ''%'' because it is being referenced by another object.', '%', split_part(substr(message, 18), ' because other objects depend on it', 1))
    when sqlstate in ('2BP01', own) and starts_with(message, 'cannot drop function ') and strpos(substr(message, 22), ' because other objects depend on it') > 0
      then replace('Cannot drop the function ''%'' because it is being referenced by another object.', '%', split_part(substr(message, 22), ' because other objects depend on it', 1))
    when sqlstate in ('42710', own) and starts_with(message, 'type "') and strpos(substr(message, 7), '" already exists') > 0
      then replace('There is already an object named ''%'' in the database.', '%', split_part(substr(message, 7), '" already exists', 1))
    when sqlstate in ('42710', own) and starts_with(message, 'constraint "') and strpos(substr(message, 13), '" for relation "') > 0
      then replace('There is already an object named ''%'' in the database.', '%', split_part(substr(message, 13), '" for relation "', 1))
    when sqlstate in ('42883', own) and starts_with(message, 'procedure ') and strpos(substr(message, 11), '(') > 0
      then replace('Could not find stored procedure ''%''.', '%', split_part(substr(message, 11), '(', 1))
    when sqlstate in ('42P17', own) and starts_with(message, 'generation expression is not immutable')
      then replace('A computed column cannot be persisted because the column is non-deterministic.', '%', '')
    when sqlstate in ('55006', own) and starts_with(message, 'cannot DROP TABLE "') and strpos(substr(message, 20), '" because it is being used') > 0
      then replace('Cannot drop the table ''%'' because it is currently in use.', '%', split_part(substr(message, 20), '" because it is being used', 1))
    when sqlstate in ('55000', own) and starts_with(message, 'cannot update view "') and strpos(substr(message, 21), '". Views that do not select from a single') > 0
      then replace('View or function ''%'' is not updatable because the modification affects multiple base tables.', '%', split_part(substr(message, 21), '". Views that do not select from a single', 1))
    when sqlstate in ('55000', own) and starts_with(message, 'cannot insert into view "') and strpos(substr(message, 26), '". Views that do not select from a single') > 0
      then replace('View or function ''%'' is not updatable because the modification affects multiple base tables.', '%', split_part(substr(message, 26), '". Views that do not select from a single', 1))
    when sqlstate in ('55000', own) and starts_with(message, 'cannot delete from view "') and strpos(substr(message, 26), '". Views that do not select from a single') > 0
      then replace('View or function ''%'' is not updatable because the modification affects multiple base tables.', '%', split_part(substr(message, 26), '". Views that do not select from a single', 1))
    when sqlstate in ('55000', own) and starts_with(message, 'cannot update view "') and strpos(substr(message, 21), '". Views ') > 0
      then replace('Cannot update the view or function ''%'' because it contains aggregates, or a DISTINCT or GROUP BY clause.', '%', split_part(substr(message, 21), '". Views ', 1))
    when sqlstate in ('55000', own) and starts_with(message, 'cannot insert into view "') and strpos(substr(message, 26), '". Views ') > 0
      then replace('Cannot update the view or function ''%'' because it contains aggregates, or a DISTINCT or GROUP BY clause.', '%', split_part(substr(message, 26), '". Views ', 1))
    when sqlstate in ('55000', own) and starts_with(message, 'cannot delete from view "') and strpos(substr(message, 26), '". Views ') > 0
      then replace('Cannot update the view or function ''%'' because it contains aggregates, or a DISTINCT or GROUP BY clause.', '%', split_part(substr(message, 26), '". Views ', 1))
    when sqlstate in ('44000', own) and starts_with(message, 'new row violates check option')
      then replace('The attempted insert or update failed because the target view either specifies WITH CHECK OPTION or spans a view that specifies WITH CHECK OPTION and one or more rows resulting from the operation did not qualify under the CHECK OPTION constraint.', '%', '')
    when sqlstate in ('54001', own) and starts_with(message, 'stack depth limit exceeded')
      then replace('Maximum stored procedure, function, trigger, or view nesting level exceeded.', '%', '')
    when sqlstate in ('428C9', own) and starts_with(message, 'computed: cannot insert a non-DEFAULT value into column "') and strpos(substr(message, 58), '"') > 0
      then replace('The column "%" cannot be modified because it is either a computed column or is the result of a UNION operator.', '%', split_part(substr(message, 58), '"', 1))
    when sqlstate in ('428C9', own) and starts_with(message, 'computed: column "') and strpos(substr(message, 19), '" can only be updated to DEFAULT') > 0
      then replace('The column "%" cannot be modified because it is either a computed column or is the result of a UNION operator.', '%', split_part(substr(message, 19), '" can only be updated to DEFAULT', 1))
    when sqlstate in ('428C9', own) and starts_with(message, 'cannot insert a non-DEFAULT value into column "') and strpos(substr(message, 48), '"') > 0
      then replace('Cannot insert explicit value for identity column when IDENTITY_INSERT is set to OFF.', '%', split_part(substr(message, 48), '"', 1))
    when sqlstate in ('428C9', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" can only be updated to DEFAULT') > 0
      then replace('Cannot update identity column ''%''.', '%', split_part(substr(message, 9), '" can only be updated to DEFAULT', 1))
    when sqlstate in ('42601', own) and starts_with(message, 'both default and identity specified for column "') and strpos(substr(message, 49), '"') > 0
      then replace('Defaults cannot be created on columns with an IDENTITY attribute. Column ''%''.', '%', split_part(substr(message, 49), '"', 1))
    when sqlstate in ('42601', own) and starts_with(message, 'each ') and strpos(substr(message, 6), ' query must have the same number of columns') > 0
      then replace('All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.', '%', split_part(substr(message, 6), ' query must have the same number of columns', 1))
    when sqlstate in ('42601', own) and starts_with(message, 'INSERT has more expressions than target columns')
      then replace('Column name or number of supplied values does not match table definition.', '%', '')
    when sqlstate in ('42601', own) and starts_with(message, 'zero-length delimited identifier')
      then replace('An object or column name is missing or empty. Aliases defined as "" or [] are not allowed.', '%', '')
    when sqlstate in ('42611', own) and starts_with(message, 'computed: cannot specify USING when altering type of generated column')
      then replace('Cannot alter a column that is ''COMPUTED''.', '%', '')
    when sqlstate in ('42701', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" appears twice in') > 0
      then replace('Cannot use duplicate column names in index. Column name ''%'' listed more than once.', '%', split_part(substr(message, 9), '" appears twice in', 1))
    when sqlstate in ('42701', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" specified more than once') > 0
      then replace('The column name ''%'' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause.', '%', split_part(substr(message, 9), '" specified more than once', 1))
    when sqlstate in ('42701', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" of relation "') > 0
      then replace('Column names in each table must be unique. Column name ''%'' is specified more than once.', '%', split_part(substr(message, 9), '" of relation "', 1))
    when sqlstate in ('42702', own) and starts_with(message, 'column reference "') and strpos(substr(message, 19), '" is ambiguous') > 0
      then replace('Ambiguous column name ''%''.', '%', split_part(substr(message, 19), '" is ambiguous', 1))
    when sqlstate in ('42703', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" named in key does not exist') > 0
      then replace('Column name ''%'' does not exist in the target table or view.', '%', split_part(substr(message, 9), '" named in key does not exist', 1))
    when sqlstate in ('42703', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '"') > 0
      then replace('Invalid column name ''%''.', '%', split_part(substr(message, 9), '"', 1))
    when sqlstate in ('42703', own) and starts_with(message, 'column ') and strpos(substr(message, 8), ' does not exist') > 0
      then replace('Invalid column name ''^''.', '^', trim(both '"' from regexp_replace(split_part(substr(message, 8), ' does not exist', 1), '^.*\.', '')))
    when sqlstate in ('42704', own) and starts_with(message, 'trigger "') and strpos(substr(message, 10), '" for table "') > 0
      then replace('ALTER TABLE failed because trigger ''%'' on the table does not exist.', '%', split_part(substr(message, 10), '" for table "', 1))
    when sqlstate in ('42704', own) and starts_with(message, 'index "') and strpos(substr(message, 8), '" does not exist') > 0
      then replace('Cannot drop the index ''%'', because it does not exist or you do not have permission.', '%', split_part(substr(message, 8), '" does not exist', 1))
    when sqlstate in ('42704', own) and starts_with(message, 'constraint "') and strpos(substr(message, 13), '" of relation "') > 0
      then replace('''%'' is not a constraint.', '%', split_part(substr(message, 13), '" of relation "', 1))
    when sqlstate in ('42704', own) and starts_with(message, 'type "tsql.ci_') and strpos(substr(message, 15), '" does not exist') > 0
      then replace('A collation without case is not supported here: it needs PostgreSQL 18, and a superuser as the installer.', '%', split_part(substr(message, 15), '" does not exist', 1))
    when sqlstate in ('42712', own) and starts_with(message, 'table name "') and strpos(substr(message, 13), '"') > 0
      then replace('The correlation name ''%'' is specified multiple times in a FROM clause.', '%', split_part(substr(message, 13), '"', 1))
    when sqlstate in ('42712', own) and starts_with(message, 'WITH query name "') and strpos(substr(message, 18), '" specified more than once') > 0
      then replace('Duplicate common table expression name ''%'' was specified.', '%', split_part(substr(message, 18), '" specified more than once', 1))
    when sqlstate in ('42803', own) and starts_with(message, 'aggregate function calls cannot be nested')
      then replace('Cannot perform an aggregate function on an expression containing an aggregate or a subquery.', '%', '')
    when sqlstate in ('42803', own) and starts_with(message, 'arguments to GROUPING must be grouping expressions')
      then replace('An argument of the GROUPING function does not match any of the expressions in the GROUP BY clause.', '%', '')
    when sqlstate in ('42803', own) and starts_with(message, 'aggregate functions are not allowed in WHERE')
      then replace('An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.', '%', '')
    when sqlstate in ('42803', own) and starts_with(message, 'aggregate functions are not allowed in GROUP BY')
      then replace('Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY clause.', '%', '')
    when sqlstate in ('42803', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" must appear in the GROUP BY clause') > 0
      then replace('Column ''%'' is invalid because it is not contained in either an aggregate function or the GROUP BY clause.', '%', split_part(substr(message, 9), '" must appear in the GROUP BY clause', 1))
    when sqlstate in ('42830', own) and starts_with(message, 'there is no unique constraint matching given keys for referenced table "') and strpos(substr(message, 73), '"') > 0
      then replace('There are no primary or candidate keys in the referenced table ''%'' that match the referencing column list in the foreign key.', '%', split_part(substr(message, 73), '"', 1))
    when sqlstate in ('42830', own) and starts_with(message, 'number of referencing and referenced columns for foreign key disagree')
      then replace('Number of referencing columns in foreign key differs from number of referenced columns.', '%', '')
    when sqlstate in ('42804', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" is of type ') > 0
      then replace('Implicit conversion to the data type of column ''%'' is not allowed. Use the CONVERT function to run this query.', '%', split_part(substr(message, 9), '" is of type ', 1))
    when sqlstate in ('42804', own) and starts_with(message, 'recursive query "') and strpos(substr(message, 18), '"') > 0
      then replace('Types don''t match between the anchor and the recursive part of a recursive query.', '%', split_part(substr(message, 18), '"', 1))
    when sqlstate in ('42809', own) and starts_with(message, 'cannot open relation "') and strpos(substr(message, 23), '"') > 0
      then replace('Object ''%'' is not a sequence object.', '%', split_part(substr(message, 23), '"', 1))
    when sqlstate in ('42809', own) and starts_with(message, 'cannot create index on relation "') and strpos(substr(message, 34), '"') > 0
      then replace('Cannot create index on view ''%'' because the view is not schema bound.', '%', split_part(substr(message, 34), '"', 1))
    when sqlstate in ('42809', own) and starts_with(message, '"') and strpos(substr(message, 2), '" is not a table') > 0
      then replace('Could not truncate object ''%'' because it is not a table.', '%', split_part(substr(message, 2), '" is not a table', 1))
    when sqlstate in ('42809', own) and starts_with(message, 'ALTER action ') and strpos(substr(message, 14), ' cannot be performed on relation "') > 0
      then replace('Cannot alter the object because it is not a table.', '%', split_part(substr(message, 14), ' cannot be performed on relation "', 1))
    when sqlstate in ('42804', own) and starts_with(message, 'UNION types ') and strpos(substr(message, 13), ' cannot be matched') > 0
      then replace('A UNION, INTERSECT or EXCEPT of columns of different types (%) is not supported where these are not known before: convert one of them.', '%', split_part(substr(message, 13), ' cannot be matched', 1))
    when sqlstate in ('42804', own) and starts_with(message, 'INTERSECT types ') and strpos(substr(message, 17), ' cannot be matched') > 0
      then replace('A UNION, INTERSECT or EXCEPT of columns of different types (%) is not supported where these are not known before: convert one of them.', '%', split_part(substr(message, 17), ' cannot be matched', 1))
    when sqlstate in ('42804', own) and starts_with(message, 'EXCEPT types ') and strpos(substr(message, 14), ' cannot be matched') > 0
      then replace('A UNION, INTERSECT or EXCEPT of columns of different types (%) is not supported where these are not known before: convert one of them.', '%', split_part(substr(message, 14), ' cannot be matched', 1))
    when sqlstate in ('42883', own) and starts_with(message, 'function tsql.sum(') and strpos(substr(message, 19), ')') > 0
      then replace('Operand data type is invalid for sum operator.', '%', split_part(substr(message, 19), ')', 1))
    when sqlstate in ('42883', own) and starts_with(message, 'function tsql.avg(') and strpos(substr(message, 19), ')') > 0
      then replace('Operand data type is invalid for avg operator.', '%', split_part(substr(message, 19), ')', 1))
    when sqlstate in ('42883', own) and starts_with(message, 'function tsql.min(') and strpos(substr(message, 19), ')') > 0
      then replace('Operand data type is invalid for min operator.', '%', split_part(substr(message, 19), ')', 1))
    when sqlstate in ('42883', own) and starts_with(message, 'function tsql.max(') and strpos(substr(message, 19), ')') > 0
      then replace('Operand data type is invalid for max operator.', '%', split_part(substr(message, 19), ')', 1))
    when sqlstate in ('42883', own) and starts_with(message, 'function tsql.divided(')
      then replace('The data types of the operands are incompatible in the divide operator.', '%', '')
    when sqlstate in ('42883', own) and starts_with(message, 'function tsql.') and strpos(substr(message, 15), '(') > 0
      then replace('An argument of the % function has a data type that is invalid for it.', '%', split_part(substr(message, 15), '(', 1))
    when sqlstate in ('42883', own) and starts_with(message, 'operator does not exist: - ')
      then replace('Operand data type is invalid for minus operator.', '%', '')
    when sqlstate in ('42883', own) and starts_with(message, 'operator does not exist: tsql.- ')
      then replace('Operand data type is invalid for minus operator.', '%', '')
    when sqlstate in ('42883', own) and starts_with(message, 'function ') and strpos(split_part(message, '(', 1), '.') = 0 and strpos(substr(message, 10), '(') > 0
      then replace('''%'' is not a recognized built-in function name, nor is there a function of this name that takes these arguments.', '%', split_part(substr(message, 10), '(', 1))
    when sqlstate in ('42P01', own) and starts_with(message, 'relation "pg_temp.') and strpos(substr(message, 19), '" does not exist') > 0
      then replace('Invalid object name ''%''.', '%', split_part(substr(message, 19), '" does not exist', 1))
    when sqlstate in ('42P01', own) and starts_with(message, 'relation "') and strpos(substr(message, 11), '" does not exist') > 0
      then replace('Invalid object name ''%''.', '%', split_part(substr(message, 11), '" does not exist', 1))
    when sqlstate in ('3F000', own) and starts_with(message, 'schema "') and strpos(substr(message, 9), '" does not exist') > 0
      then replace('Database ''%'' does not exist. Make sure that the name is entered correctly.', '%', split_part(substr(message, 9), '" does not exist', 1))
    when sqlstate in ('3F000', own) and starts_with(message, 'Database ''') and strpos(substr(message, 11), ''' does not exist.') > 0
      then replace('Database ''%'' does not exist. Make sure that the name is entered correctly.', '%', split_part(substr(message, 11), ''' does not exist.', 1))
    when sqlstate in ('3F000', own) and starts_with(message, 'Could not locate entry in sysdatabases for database ''') and strpos(substr(message, 54), '''. No entry') > 0
      then replace('Database ''%'' does not exist. Make sure that the name is entered correctly.', '%', split_part(substr(message, 54), '''. No entry', 1))
    when sqlstate in ('42P01', own) and starts_with(message, 'missing FROM-clause entry for table "') and strpos(substr(message, 38), '"') > 0
      then replace('The multi-part identifier "%" could not be bound.', '%', split_part(substr(message, 38), '"', 1))
    when sqlstate in ('42P01', own) and starts_with(message, 'invalid reference to FROM-clause entry for table "') and strpos(substr(message, 51), '"') > 0
      then replace('The multi-part identifier "%" could not be bound.', '%', split_part(substr(message, 51), '"', 1))
    when sqlstate in ('42P07', own) and starts_with(message, 'relation "') and strpos(substr(message, 11), '" already exists') > 0
      then replace('There is already an object named ''%'' in the database.', '%', split_part(substr(message, 11), '" already exists', 1))
    when sqlstate in ('42P10', own) and starts_with(message, 'ORDER BY position ') and strpos(substr(message, 19), ' ') > 0
      then replace('The ORDER BY position number % is out of range of the number of items in the select list.', '%', split_part(substr(message, 19), ' ', 1))
    when sqlstate in ('42P10', own) and starts_with(message, 'for SELECT DISTINCT, ORDER BY expressions must appear in select list')
      then replace('ORDER BY items must appear in the select list if SELECT DISTINCT is specified.', '%', '')
    when sqlstate in ('42P16', own) and starts_with(message, 'multiple primary keys for table "') and strpos(substr(message, 34), '"') > 0
      then replace('Cannot add multiple PRIMARY KEY constraints to table ''%''.', '%', split_part(substr(message, 34), '"', 1))
    when sqlstate in ('42P16', own) and starts_with(message, 'column "') and strpos(substr(message, 9), '" is in a primary key') > 0
      then replace('The primary key is dependent on column ''%''.', '%', split_part(substr(message, 9), '" is in a primary key', 1))
    when sqlstate in ('42P20', own) and starts_with(message, 'frame ')
      then replace('The rows between these bounds are not a valid window frame and cannot be used with the OVER clause.', '%', '')
    when sqlstate in ('42P20', own) and starts_with(message, 'window functions are not allowed in')
      then replace('Windowed functions can only appear in the SELECT or ORDER BY clauses.', '%', '')
  end
  from (select case when sqlstate ~ '^S\d{4,5}$' then sqlstate end) as known (own)
$$;

comment on function tsql.own_message(text, text) is
$$What T-SQL says where PostgreSQL has said this; null where it has no words of its own. sqlstate: also that of
tsql.own_state.$$;


create or replace function tsql.number_in_ase(number integer)
returns integer
language sql
immutable
as $$
  select case number
    when 251 then 241
    when 2627 then 2601
    when 15009 then 17461
    when 15250 then 17460
    else number
  end
$$;

comment on function tsql.number_in_ase(integer) is
$$ASE's number for an error of T-SQL's own.$$;


create or replace function tsql.error_severity(number integer)
returns integer
language sql
immutable
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

comment on function tsql.error_severity(integer) is
$$The severity of an error that PostgreSQL has raised.$$;


create or replace function tsql.ends_more(number integer)
returns boolean
language sql
immutable
as $$
  select number between 100 and 199
    or number between 206 and 209
    or number = 213
    or number = 217
    or number = 241
    or number between 244 and 245
    or number = 248
    or number = 257
    or number = 260
    or number = 295
    or number = 701
    or number = 911
    or number = 1014
    or number = 1031
    or number = 1205
    or number between 2715 and 2716
    or number = 3609
    or number = 3616
    or number = 3930
    or number between 4104 and 4108
    or number = 8114
    or number between 8116 and 8117
    or number between 8120 and 8127
    or number = 8169
    or number between 8623 and 8624
$$;

comment on function tsql.ends_more(integer) is
$$Whether an error of T-SQL's own ends more than its statement.$$;


create or replace function tsql.ends_its_transaction(number integer)
returns boolean
language sql
immutable
as $$
  select number = 241
    or number between 244 and 245
    or number = 248
    or number = 295
    or number = 1205
    or number = 3609
    or number = 3616
    or number = 8114
    or number = 8169
$$;

comment on function tsql.ends_its_transaction(integer) is
$$Whether an error would end the transaction outside of a TRY block.$$;


create or replace function tsql.ends_its_statement(sqlstate text, detail text)
returns boolean
language sql
immutable
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


create or replace function tsql.is_arithmetic(sqlstate text, message text, table_ text, constraint_ text)
returns boolean
language sql
stable
as $$
  select tsql.error_number(tsql.own_state(sqlstate, message, table_, constraint_, true)) in (220, 247, 3623, 8115, 8134)
    and current_setting('tsql.arith_overflow', true) is distinct from 'off'
$$;

comment on function tsql.is_arithmetic(text, text, text, text) is
$$Whether an error is an overflow, a division by zero or a domain error, which in ASE ends the batch and its transaction
unless set arithabort arith_overflow is off.$$;


create or replace function tsql.ends_its_batch(sqlstate text)
returns boolean
language sql
immutable
as $$
  select sqlstate in ('40001', '40P01')
    or (sqlstate like '42%' and sqlstate not in ('21000', '22001', '22003', '2200H', '22012', '23502', '23503', '23514', '23P01', '23505', '25006', '28000', '28P01', '34000', '42501', '428C9', '42P03', '42710', '42723', '42P07', '44000', '53100', '53300', '55P03'))
$$;

comment on function tsql.ends_its_batch(text) is
$$Whether an error is none for the CATCH block beside it: a deadlock, whose victim is the whole transaction, and
names that are wrong, which T-SQL finds before it runs anything.$$;
