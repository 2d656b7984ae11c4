"""Whether another process has taken this instance's name, or the target ended its transaction.

The target ends a transaction that is open for longer than its timeout, and gives the producer's
epoch to nobody; the next request of the producer gets the error that it also gets if a process with
the same transactional id has started (KIP-360, KIP-588). A machine that was suspended, or a process
that was stopped, comes back to that. The group's member has the instance's name, too: if another
process has it, the member is refused by an error of its own.
"""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import KafkaError

OF_PRODUCERS: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)
TAKEN_OVER: Final = OF_PRODUCERS | {KafkaError.FENCED_INSTANCE_ID}
"""Another process may have this instance's name."""


def may_have_timed_out(code: int, open_s: float, timeout_s: float) -> bool:
    """Whether this error, of a producer with a transaction that is open for so long, may only mean
    that the target has ended that.
    """
    return code in OF_PRODUCERS and open_s >= timeout_s


class TransactionAge:
    """How long a transaction is open. While a machine is suspended, one clock may stand still."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """It begins now."""
        self._since_s = time.monotonic(), time.time()

    def seconds(self) -> float:
        """By the clock that has gone on."""
        now_s = time.monotonic(), time.time()
        return max(now - since for now, since in zip(now_s, self._since_s, strict=True))
