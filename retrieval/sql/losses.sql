-- what became of the rows of writers, by table and hour
select * from ringlog.losses({start}, {end}, {of_table}::text)
