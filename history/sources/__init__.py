"""Old rows as Arrow, wherever they are: implementations of ringlog.history.incoming.Source."""
