-- ASE: the default character set (configuration parameter 131).
select c.name from master..syscharsets c, master..syscurconfigs f where f.config = 131 and c.id = f.value and c.type < 2000
