"""Memory of this process that nothing uses any more."""

import ctypes
import gc


def give_back_memory() -> None:
    """Returns free memory to the system. Otherwise glibc keeps the memory that the start has used."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
