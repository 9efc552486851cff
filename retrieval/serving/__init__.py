"""The process that serves HTTP: logins, limits, queries, and the common parts of all requests and answers."""
