use {control}
go
create table beam_loss (seq_no int not null primary key, time datetime null, loss real null, gate int null)
go
create table beam_loss_log (seq_no int not null, time datetime not null, loss real null, gate int null)
go
create table SR_VAC (No int not null primary key, Stamp datetime null, P1 float null, P2 float null, Valve bit null)
go
create table SR_VAC_HIST (No int not null, Stamp datetime not null, P1 float null, P2 float null, Valve bit null)
go
create table ring_position (name varchar(30) not null primary key, seq_no int not null)
go
insert ring_position values ('beam_loss', 0)
insert ring_position values ('SR_VAC', 0)
go
create table suppliers (
    id int identity(10, 5) not null primary key, name nvarchar(40) not null default 'nobody', rated real null)
go
create table [Order] (
    [key] int not null, supplier int null, price money not null default 0,
    [half] as price / 2, ratio float null,
    made datetime2(3) null default getdate(), day date null,
    code binary(4) null, flag bit not null, note text null,
    grade char(3) null, primary key ([key]),
    constraint positive check ([key] > 0),
    constraint graded check (grade in ('a', 'b', 'c') or grade is null),
    constraint fk_supplier foreign key (supplier) references suppliers (id) on delete set null)
go
create index by_day on [Order] (day desc, flag)
go
create unique index once on suppliers (name)
go
create table every_type (
    id bigint not null primary key,
    c_bit bit null, c_tinyint tinyint null, c_smallint smallint null, c_int int null, c_bigint bigint null,
    c_decimal decimal(38, 10) null, c_numeric numeric(9, 2) null, c_money money null, c_smallmoney smallmoney null,
    c_real real null, c_float float null,
    c_char char(10) null, c_varchar varchar(100) null, c_varchar_max varchar(max) null,
    c_nchar nchar(10) null, c_nvarchar nvarchar(100) null, c_nvarchar_max nvarchar(max) null,
    c_text text null, c_ntext ntext null,
    c_binary binary(8) null, c_varbinary varbinary(100) null, c_varbinary_max varbinary(max) null, c_image image null,
    c_datetime datetime null, c_smalldatetime smalldatetime null, c_date date null, c_time time null, c_time3 time(3) null,
    c_datetime2 datetime2 null, c_datetime2_3 datetime2(3) null, c_datetimeoffset datetimeoffset null,
    c_uuid uniqueidentifier null, c_variant sql_variant null, c_sysname sysname null)
go
create table stamped (id int not null, v varchar(10) null, constraint pk_stamped primary key (id), constraint u_stamped unique (v))
go
insert suppliers (name, rated) values (N'Müller & Söhne', 0.1)
insert suppliers (name, rated) values (N'加速器', null)
insert suppliers (name) values ('gone')
delete suppliers where name = 'gone'
go
insert [Order] ([key], supplier, price, ratio, made, day, code, flag, note, grade)
values (1, 10, $12.3456, 0.1, '2026-03-02 01:02:03.456', '2026-03-02', 0x01020304, 1, 'a ''text''', 'a')
insert [Order] ([key], supplier, price, ratio, made, day, code, flag, note, grade)
values (2, null, -$1, 1e-300, null, null, null, 0, null, null)
go
insert every_type (id) values (0)
insert every_type values (1, 1, 255, -32768, -2147483648, -9223372036854775807,
    1234567890123456789012345678.0123456789, -1234567.89, -922337203685477.5808, 214748.3647,
    3.402823e38, 1.7976931348623157e308,
    'abc', 'it''s', replicate(convert(varchar(max), 'x'), 9000), N'加速器', N'Müller', replicate(convert(nvarchar(max), N'é'), 5000),
    'text', N'ntext é',
    0x0102, 0x0001ff, 0xdeadbeef, 0x00ff,
    '2026-03-02 01:02:03.457', '2026-03-02 01:02', '0001-01-01', '23:59:59.123456', '01:02:03.457',
    '9999-12-31 23:59:59.123456', '2026-03-02 01:02:03.457', '2026-03-02 01:02:03.123456 +09:00',
    '6F9619FF-8B86-D011-B42D-00C04FC964FF', cast('a' as varchar(9)), 'dbo')
insert every_type values (2, 0, 0, 32767, 2147483647, 9223372036854775807,
    -0.0000000001, 0, 0.0001, -0.0001, 1.17549435e-38, -2.5e-300,
    '', '', '', N'', N'', N'', '', N'', 0x, 0x, 0x, 0x,
    '1753-01-01', '1900-01-01', '9999-12-31', '00:00:00', '00:00:00.001',
    '0001-01-01', '1999-12-31 23:59:59.999', '2026-03-02 01:02:03 -03:30',
    '00000000-0000-0000-0000-000000000000', cast(0.1 as float), 'x')
insert every_type (id, c_variant) values (3, cast(5.250 as decimal(10, 3)))
insert every_type (id, c_variant) values (4, cast($7.1234 as money))
insert every_type (id, c_variant) values (5, cast('2026-03-02 01:02:03.457' as datetime))
insert every_type (id, c_variant) values (6, cast(-7 as smallint))
insert every_type (id, c_variant) values (7, cast(N'加速器' as nvarchar(7)))
insert every_type (id, c_variant) values (8, cast(0x4142 as varbinary(5)))
go
insert stamped values (1, 'one')
insert stamped values (2, null)
go
create procedure put_beam_loss @time datetime, @loss real, @gate int
as
declare @seq_no int
update ring_position set seq_no = seq_no % 50 + 1 where name = 'beam_loss'
select @seq_no = seq_no from ring_position where name = 'beam_loss'
update beam_loss set time = @time, loss = @loss, gate = @gate where seq_no = @seq_no
if @@rowcount = 0
    insert beam_loss (seq_no, time, loss, gate) values (@seq_no, @time, @loss, @gate)
insert beam_loss_log (seq_no, time, loss, gate) values (@seq_no, @time, @loss, @gate)
return @seq_no
go
create procedure fill_rings @n int
as
set nocount on
declare @i int, @t datetime
set @i = 0
while @i < @n
begin
    set @t = dateadd(minute, 10 * @i, '2026-03-02 01:02:03')
    exec put_beam_loss @t, @i, @i
    if @i < 40
        insert SR_VAC values (@i + 1, @t, @i * 0.5, 1e-9 * @i, @i % 2)
    else
        update SR_VAC set Stamp = @t, P1 = @i * 0.5, P2 = 1e-9 * @i, Valve = @i % 2 where No = @i % 40 + 1
    insert SR_VAC_HIST values (@i % 40 + 1, @t, @i * 0.5, 1e-9 * @i, @i % 2)
    set @i = @i + 1
end
go
exec fill_rings 3000
go
create procedure mean_loss @from datetime, @to datetime, @mean float output, @rows int = 0 output
as
select @mean = avg(loss), @rows = count(*) from beam_loss_log where time >= @from and time < @to
if @rows = 0
    return 1
return 0
go
create procedure last_losses @n int = 5
as
select top (@n) seq_no, time, loss from beam_loss_log order by time desc
go
create procedure order_of @key int
as
if not exists (select * from [Order] where [key] = @key)
begin
    raiserror ('no order %d', 16, 1, @key)
    return -1
end
print 'found'
select o.[key], s.name, o.price, o.half from [Order] o left join suppliers s on s.id = o.supplier where o.[key] = @key
return 0
go
create procedure steps @step real
as
declare @time datetime, @loss real, @before real, @found int
create table #steps (time datetime not null, before real null, loss real null)
select @found = 0
declare losses cursor for select time, loss from beam_loss_log where gate < 30 order by time
open losses
fetch next from losses into @time, @loss
while @@fetch_status = 0
begin
    if @before is not null and abs(@loss - @before) >= @step
    begin
        insert #steps values (@time, @before, @loss)
        select @found = @found + 1
    end
    select @before = @loss
    fetch next from losses into @time, @loss
end
close losses
deallocate losses
select time, before, loss from #steps order by time
return @found
go
create procedure dynamic_count @table sysname
as
declare @text nvarchar(200)
set @text = N'select count(*) as n from ' + @table
exec sp_executesql @text
go
create procedure caught @key int
as
begin try
    insert [Order] ([key], flag) values (@key, 1)
    delete [Order] where [key] = @key and price = 0
end try
begin catch
    select error_number() as number, error_message() as message
    return 1
end catch
go
create function twice (@a int) returns int as begin return 2 * @a end
go
create function orders_over (@price money) returns table as return (select [key], price from [Order] where price > @price)
go
create view orders as select o.[key], s.name supplier_name, o.price from [Order] o left join suppliers s on s.id = o.supplier
go
create view [dear orders] (number, price) as select [key], price from orders where price > 1
go
create table audit (id int identity not null primary key, what varchar(40) null, n int null)
go
create trigger counted on stamped for insert, update as
insert audit (what, n) select 'stamped', count(*) from inserted
go
insert stamped values (3, 'three')
go
create schema ops
go
create table ops.shifts (id int not null primary key, who nvarchar(30) null, began datetime null)
go
insert ops.shifts values (1, N'Öztürk', '2026-03-02 08:00')
go
create view ops.on_duty as select id, who from ops.shifts where began is not null
go
use {archive}
go
create table LINAC (No int not null, Stamp datetime not null, V1 float null)
go
create table title (id int identity(7, 3) primary key, name nvarchar(30) not null)
go
insert title (name) values (N'of the archive')
insert title (name) values (N'gone')
delete title where id = 10
go
create view linac_rows as select n = count(*) from LINAC
go
declare @i int
set @i = 0
while @i < 300
begin
    insert LINAC values (@i % 20 + 1, dateadd(hour, @i, '2026-03-02'), @i / 8.0)
    set @i = @i + 1
end
go
use {control}
go
create table LINAC (No int not null primary key, Stamp datetime null, V1 float null)
go
insert LINAC select No, Stamp, V1 from {archive}.dbo.LINAC where Stamp >= '2026-03-13 16:00'
go
create table title (id int not null primary key, name nvarchar(30) not null)
go
insert title values (1, N'of the control room')
go
create view linac_rows as select n, here = (select count(*) from LINAC) from {archive}.dbo.linac_rows
go
create procedure titles as
select name from title union all select name from {archive}..title order by name
go
