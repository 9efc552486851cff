create procedure mean_loss @from datetime, @to datetime, @mean float output, @rows int = 0 output
as
select @mean = avg(loss), @rows = count(*) from beam_loss_log where time >= @from and time < @to
if @rows = 0
    return 1
return 0
go
grant execute on mean_loss to daq_reader
go
create procedure loss_steps @step real
as
declare @time datetime, @loss real, @before real, @found int
create table #steps (time datetime not null, before real null, loss real null)
select @found = 0
declare losses cursor for select time, loss from beam_loss_log order by time
open losses
fetch losses into @time, @loss
while @@sqlstatus = 0
begin
    if @before is not null and abs(@loss - @before) >= @step
    begin
        insert #steps values (@time, @before, @loss)
        select @found = @found + 1
    end
    select @before = @loss
    fetch losses into @time, @loss
end
close losses
deallocate cursor losses
select time, before, loss from #steps order by time
return @found
go
grant execute on loss_steps to daq_reader
go
create procedure correct_loss @time datetime, @loss real
as
declare @rows int, @text varchar(200)
begin try
    begin transaction
    update beam_loss_log set loss = @loss where time = @time
    select @rows = @@rowcount
    if @rows <> 1
        raiserror ('%d rows have this time', 16, 1, @rows)
    commit transaction
end try
begin catch
    if @@trancount > 0 rollback transaction
    select @text = error_message()
    raiserror (@text, 16, 1)
    return -1
end catch
return 0
go
create procedure add_loss @time datetime, @loss real, @table varchar(30) = 'beam_loss_log'
as
declare @text nvarchar(200)
begin transaction
save transaction before_loss
select @text = 'insert ' + @table + ' (time, loss) values (@t, @l)'
exec sp_executesql @text, N'@t datetime, @l real', @time, @loss
if @@error <> 0
    rollback transaction before_loss
commit transaction
go
grant execute on add_loss to daq_writer
grant insert on beam_loss_log to daq_writer
go
