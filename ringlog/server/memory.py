"""Memory of this process that nothing uses any more."""

import ctypes
import gc


def give_back_memory() -> None:
    """Returns it to the system. Otherwise glibc keeps what the start has used, for ever."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
