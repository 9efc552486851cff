create sequence numbers start with 10
create type short_name from varchar(12) not null
create table devices (id int identity primary key, name short_name unique,
  place varchar(20) collate Latin1_General_CI_AS, price money default 1.5 check (price > 0),
  twice as price * 2, made datetime2(3), version rowversion, parent int null references devices (id))
create index by_place on devices (place)
create view cheap as select id, name, price from devices where price < 10
create function doubled (@price money) returns money as begin return @price * 2 end
create procedure add_device @name varchar(12), @place varchar(20), @id int output as
  insert into devices (name, place, made) values (@name, @place, '2026-01-01') set @id = @@identity
create procedure devices_of @place varchar(20) as
  select id, name, price from devices where place = @place order by id
create procedure counted as declare @n int exec ('select 1') select @n = count(*) from cheap return @n
create procedure several;1 as select 1
create procedure several;2 as select 2
create table changes (what varchar(40), at int default next value for numbers)
create trigger on_devices on devices for update as insert into changes (what) select name from inserted
declare @id int exec add_device 'pump', 'Hall A', @id output exec add_device 'valve', 'hall a', @id output
update devices set price = 20 where name = 'valve'
create schema staff
create table staff.people (id int primary key, device int references devices (id))
insert staff.people values (1, 2)
create procedure staff.listed as select p.id, d.name from people p join devices d on d.id = p.device
