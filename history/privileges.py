"""Root's rights, which a process that answers others gives up."""

import grp
import os


def become(uid: int, gid: int) -> None:
    """Goes on under this account, for good, in no other group than its own."""
    os.setgroups([group.gr_gid for group in grp.getgrall() if group.gr_gid == gid])
    os.setgid(gid)
    os.setuid(uid)
