"""The process of `ringlog serve` and `ringlog web` that serves HTTP. Its arguments are the options of its
log."""

import sys

from ringlog.logs import Format, Level, start
from ringlog.retrieval.serving.server import main

if __name__ == "__main__":
    level, form = sys.argv[1:]
    start(Level(level), Format(form), limited=True)
    main()
