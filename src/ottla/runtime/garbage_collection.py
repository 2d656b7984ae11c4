"""Stops Python's cyclic garbage collector for a while.

It looks at all objects each time their number has grown by a quarter. A start creates
dozens of objects for each partition, and keeps them: with 10,000 partitions the collector takes a
quarter of the start and finds nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """No collection inside the block. Objects without cycles are freed as always.

    What the block leaves behind counts as old: the first collection after it does not look at it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Together: all objects move to the oldest generation.
        gc.freeze()
        gc.unfreeze()
        gc.enable()
