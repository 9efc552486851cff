-- Comparisons of datetimeoffsets, by the instant: a value without an offset is taken as UTC ("Data type precedence"), a
-- timestamp with time zone as its instant.

call tsql.make_comparisons('tsql.datetimeoffset', 'tsql.datetimeoffset', '(%s).moment', '(%s).moment');
call tsql.make_comparisons('tsql.datetimeoffset', 'timestamp', '(%s).moment', '%s at time zone ''UTC''');
call tsql.make_comparisons('tsql.datetimeoffset', 'date', '(%s).moment', '%s::timestamp at time zone ''UTC''');
call tsql.make_comparisons('tsql.datetimeoffset', 'timestamptz', '(%s).moment', '%s');
call tsql.make_comparisons('tsql.datetimeoffset', 'text', '(%s).moment', '(tsql.read_datetimeoffset(%s, 0)).moment');
call tsql.make_operator_class('tsql.datetimeoffset', 'by_instant', 'tsql.compare_offsets');

create or replace function tsql.lesser(l tsql.datetimeoffset, r tsql.datetimeoffset) returns tsql.datetimeoffset
language sql immutable strict parallel safe return case when (r).moment < (l).moment then r else l end;
create or replace function tsql.greater(l tsql.datetimeoffset, r tsql.datetimeoffset) returns tsql.datetimeoffset
language sql immutable strict parallel safe return case when (r).moment > (l).moment then r else l end;
create or replace aggregate tsql.min(tsql.datetimeoffset) (sfunc = tsql.lesser, stype = tsql.datetimeoffset);
create or replace aggregate tsql.max(tsql.datetimeoffset) (sfunc = tsql.greater, stype = tsql.datetimeoffset);
