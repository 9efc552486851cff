-- ASE: extended stored procedures.
select user_name(uid), name from sysobjects where type = 'XP' order by name
