create table suppliers (
    id int identity(10, 5) not null primary key, name nvarchar(40) not null default 'nobody', rated real null)
go
create table [Order] (
    [key] int not null, supplier int null, price money not null default 0,
    [half] as price / 2, ratio float null,
    made datetime2(3) null default getdate(), day date null,
    code binary(4) null, flag bit not null, note text null,
    grade char(3) null, primary key ([key]),
    constraint fk_supplier foreign key (supplier) references suppliers (id) on delete set null)
go
create index by_day on [Order] (day desc, flag)
go
create unique index noted on [Order] (grade) where grade is not null
go
insert suppliers (name, rated) values ('Müller & Söhne', 0.1)
insert suppliers (name, rated) values (N'加速器', null)
insert suppliers (name) values ('gone')
delete suppliers where name = 'gone'
go
create unique index once on suppliers (name)
go
create table logged (
    n int not null primary key, at datetimeoffset(7) null, value sql_variant null, fine time(6) null)
go
insert logged (n, value) select 1, cast(cast('a:"b\"' as varchar(9)) as sql_variant)
insert logged (n, value) select 2, cast(cast(0.1 as float) as sql_variant)
insert logged (n, value) select 3, cast(cast(1e-30 as real) as sql_variant)
insert logged (n, value) select 4, cast(cast(5.250 as decimal(10, 3)) as sql_variant)
insert logged (n, value) select 5, cast(cast($7.1234 as money) as sql_variant)
insert logged (n, value) select 6, cast(cast(0x4142 as varbinary(5)) as sql_variant)
insert logged (n, value) select 7, cast(cast('2026-03-02 01:02:03.457' as datetime) as sql_variant)
insert logged (n, value) select 8, cast(cast('2026-03-02 01:02:03.123456' as datetime2(6)) as sql_variant)
insert logged (n, value) select 9,
    cast(cast('2026-03-02 01:02:03.12 +09:00' as datetimeoffset(2)) as sql_variant)
insert logged (n, value) select 10, cast(cast('01:02:03.12' as time(2)) as sql_variant)
insert logged (n, value) select 11, cast(cast(N'加速器' as nvarchar(7)) as sql_variant)
insert logged (n, value) select 12,
    cast(cast('6F9619FF-8B86-D011-B42D-00C04FC964FF' as uniqueidentifier) as sql_variant)
insert logged (n, value) select 13, cast(cast(-7 as smallint) as sql_variant)
insert logged (n) values (14)
update logged set at = '2026-03-02 01:02:03.123456 +09:00' where n = 1
update logged set at = '2026-03-02 01:02:03 -03:30', fine = '01:02:03.123456' where n = 2
go
create function twice (@a int) returns int as begin return 3 * @a end
go
-- alter
alter function twice (@a int) returns int as begin return 2 * @a end
go
insert [Order] ([key], supplier, price, ratio, made, day, code, flag, note, grade)
values (1, 10, $12.3456, 0.1, '2026-03-02 01:02:03.456', '2026-03-02', 0x01020304, 1, 'a ''text''', 'a')
insert [Order] ([key], supplier, price, ratio, made, day, code, flag, note, grade)
values (2, null, -$1, 1e-300, null, null, null, 0, null, null)
go
create trigger counted on [Order] for insert as update suppliers set rated = 99
go
