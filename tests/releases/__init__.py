"""Sites of released versions, on which today's ringlog starts."""
