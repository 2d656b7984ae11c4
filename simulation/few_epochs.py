"""Producer epochs that are used up soon: 32,767 transactions are more than a run has.

The coordinator's limit becomes small, so that producer ids change while transactions are open and
while markers are written (KIP-890). The brokers' logs keep Kafka's limit, which they reach only
under transaction.version below 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ottla.transactions import abort, end, stored

MAX_EPOCH: Final = 6
_MODULES: Final = (stored, end, abort)


@contextmanager
def few_epochs() -> Iterator[None]:
    """While it lasts, epochs end at `MAX_EPOCH`."""
    right = stored.MAX_EPOCH
    for module in _MODULES:
        vars(module)["MAX_EPOCH"] = MAX_EPOCH
    try:
        yield
    finally:
        for module in _MODULES:
            vars(module)["MAX_EPOCH"] = right
