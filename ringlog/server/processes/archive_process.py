"""The archive server's process. Its arguments are the options of its log."""

import sys

from ringlog.history.archive_server.server import main
from ringlog.logs import Format, Level, start

if __name__ == "__main__":
    level, form = sys.argv[1:]
    start(Level(level), Format(form), limited=True)
    main()
