-- ASE: tables of the database; their rows are counted one by one.
select user_name(uid), name, null from sysobjects where type = 'U' order by name
