create table beam_loss (seq_no int not null primary key, time datetime null, loss real null, gate int null)
go
create table beam_loss_log (seq_no int not null, time datetime not null, loss real null, gate int null)
go
create table ring_position (name varchar(30) not null primary key, seq_no int not null)
go
create table authors (au_id varchar(11) not null primary key, au_lname varchar(40) not null, contract bit not null)
go
create table titles (title_id varchar(6) not null primary key, title varchar(80) not null, price decimal(10, 2) null)
go
create table titleauthor (au_id varchar(11) not null, title_id varchar(6) not null, royalty int null, primary key (au_id, title_id))
go
insert ring_position values ('beam_loss', 0)
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
create view titleview as
select title, au_lname, price, share = royalty -- of the price
from authors, titles, titleauthor
where authors.au_id = titleauthor.au_id and titles.title_id = titleauthor.title_id
go
create procedure byroyalty @percentage int
as
select au_id from titleauthor where royalty = @percentage
go
create procedure raise_price @title varchar(6), @by decimal(10, 2)
as
if not exists (select * from titles where title_id = @title)
begin
    print 'no such title'
    return 1
end
update titles set price = price + @by where title_id = @title
return 0
go
