"""Lets the C library keep freed memory for the next allocation.

A Produce request of a megabyte takes several allocations of that size. glibc returns them to the
kernel when they are freed, and the kernel maps and clears every page again for the next request:
twice the time of everything else that the broker does with it. glibc's own defaults
(M_MMAP_THRESHOLD, M_TRIM_THRESHOLD in mallopt(3)) suit programs with few such allocations.
"""

import ctypes
import os
from collections.abc import Mapping
from typing import Final

MMAP_THRESHOLD_BYTES: Final = 8 << 20
"""Larger allocations are mapped on their own and returned when freed. Clients send a megabyte at
a time by default, and followers fetch up to 8 MiB."""
MAX_KEPT_BYTES: Final = 32 << 20
"""Limit for what is kept at the end of the heap."""

# malloc.h
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

_SET_BY_USER: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Change the limits for this process, and return whether that was possible.

    It is not on systems without glibc. Limits that the user has set in the environment stay.
    """
    if any(name in environment for name in _SET_BY_USER):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(
        mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
        and mallopt(_M_TRIM_THRESHOLD, MAX_KEPT_BYTES)
    )
