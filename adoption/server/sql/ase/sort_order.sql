-- ASE: the sort order (configuration parameter 123).
select c.name from master..syscharsets c, master..syscurconfigs f where f.config = 123 and c.id = f.value and c.type >= 2000
