use control
go
create table beam_loss (seq_no int not null primary key, time datetime null, loss real null)
go
create table title (id int not null primary key, name varchar(30) not null)
go
use history
go
create table beam_loss (seq_no int not null, time datetime not null, loss real null)
go
create table title (id int identity primary key, name varchar(30) not null)
go
create view v as select n = count(*) from beam_loss
go
use control
go
create view v as select n, here = (select count(*) from beam_loss) from history..v
go
create procedure both_titles as
select name from control..title union all select name from history.dbo.title order by name
go
create procedure put_beam_loss @seq_no int, @time datetime, @loss real as
update beam_loss set time = @time, loss = @loss where seq_no = @seq_no
insert history..beam_loss values (@seq_no, @time, @loss)
return 0
go
create procedure elsewhere as
select 1
select * from nowhere..t
exec history..gone
go
insert title values (1, 'of control')
insert history..title (name) values ('of history')
go
use history
go
create procedure again @time datetime as
exec control..put_beam_loss 7, @time, 0.5
return 3
