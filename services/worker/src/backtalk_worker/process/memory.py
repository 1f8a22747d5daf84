"""What the C library does with freed memory.

A step takes and frees blocks of megabytes between small ones that stay. By default the library soon keeps such blocks
between the small ones, where they are neither joined nor given back: a process grows to a multiple of what it uses.
"""

import ctypes

M_MMAP_THRESHOLD = -3
LARGE_BYTES = 1024**2


def give_back_large_blocks() -> bool:
    """Has every block of a megabyte or more mapped on its own, and given back when it is freed.

    A step of the laptop's size takes as long with it. False where the C library has no such bound.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(M_MMAP_THRESHOLD, LARGE_BYTES) == 1
