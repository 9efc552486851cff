"""Giving up root's rights in processes that answer requests."""

import grp
import os


def become(uid: int, gid: int) -> None:
    """Changes to this account for good, with its own group only."""
    os.setgroups([group.gr_gid for group in grp.getgrall() if group.gr_gid == gid])
    os.setgid(gid)
    os.setuid(uid)
