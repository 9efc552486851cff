"""`python -m ringlog` is the command `ringlog`."""

from ringlog.cli import main

main()
