-- Case-insensitive texts, as under SQL Server's collations ..._CI_AS. They are separate types, so that comparisons,
-- keys, `group by` and `distinct` of such a column have the same meaning wherever PostgreSQL evaluates them. Two texts
-- are equal if they are by Unicode's simple case folding, which keeps the number of characters; trailing blanks are
-- ignored.
--
-- A text is converted to one of these implicitly, because a column's collation precedes that of a literal or variable
-- ("Collation Precedence"), but never the other way: no function loses the collation of its argument unnoticed.
-- casefold() requires PostgreSQL 18, and only a superuser may create types; without them such collations are refused.

do $$
declare
  own constant text := current_user;
  of record;
begin
  if current_setting('server_version_num')::integer < 180000 or to_regtype('tsql.ci_varchar') is not null or not (
    select rolsuper from pg_roles where rolname = session_user
  ) then
    return;
  end if;
  execute format('set local role %I', session_user);
  for of in select * from (values ('ci_varchar', 'varchar'), ('ci_char', 'bpchar')) as types (name, base) loop
    execute format('create type tsql.%I', of.name);
    execute format('create function tsql.%1$s_in(cstring, oid, integer) returns tsql.%1$s'
      ' language internal immutable strict parallel safe as %2$L', of.name, of.base || 'in');
    execute format('create function tsql.%1$s_out(tsql.%1$s) returns cstring'
      ' language internal immutable strict parallel safe as %2$L', of.name, of.base || 'out');
    execute format('create function tsql.%1$s_receive(internal, oid, integer) returns tsql.%1$s'
      ' language internal stable strict parallel safe as %2$L', of.name, of.base || 'recv');
    execute format('create function tsql.%1$s_send(tsql.%1$s) returns bytea'
      ' language internal stable strict parallel safe as %2$L', of.name, of.base || 'send');
    execute format('create type tsql.%1$s (input = tsql.%1$s_in, output = tsql.%1$s_out, receive = tsql.%1$s_receive,'
      ' send = tsql.%1$s_send, typmod_in = %2$stypmodin, typmod_out = %2$stypmodout, like = %2$s, category = ''S'','
      ' collatable = true)', of.name, of.base);
    -- to the length of a column
    execute format('create function tsql.%1$s(tsql.%1$s, integer, boolean) returns tsql.%1$s'
      ' language internal immutable strict parallel safe as %2$L', of.name, of.base);
    execute format('create cast (tsql.%1$s as tsql.%1$s) with function tsql.%1$s(tsql.%1$s, integer, boolean) as implicit',
      of.name);
    execute format('create cast (tsql.%s as %s) without function as assignment', of.name, of.base);
    execute format('create cast (%2$s as tsql.%1$s) without function as implicit', of.name, of.base);
  end loop;
  create cast (tsql.ci_varchar as text) without function as assignment;
  create cast (text as tsql.ci_varchar) without function as implicit;
  execute format('set local role %I', own);
end
$$;
