"""Memory of this process that nothing uses any more."""

import ctypes
import gc
import sys


def give_back_memory() -> None:
    """Returns free memory to the system. Otherwise glibc and Arrow keep what a start or a large answer has
    used."""
    gc.collect()
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
