"""Waits until the offset map's topic can be read whole."""

from __future__ import annotations

import time
from typing import Final

from ottla.client.admin.offsets import end_offsets, stable_offsets
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.clusters import SideClient

STABLE_WITHIN_S: Final = 45.0
"""The target ends an open transaction after TRANSACTION_TIMEOUT_MS, and looks every ten seconds."""
LOOK_PAUSE_S: Final = 0.2


def wait_until_stable(target: SideClient, topic: str) -> int:
    """Waits until all transactions have ended that have written to the topic, of one partition,
    before now; before the offset that it returns. Raises ClientError.
    """
    partition = TopicPartition(topic, 0)
    until_s = time.monotonic() + STABLE_WITHIN_S
    with target.asked():
        end = end_offsets(target, [partition])[partition]
        while stable_offsets(target, [partition])[partition] < end:
            if time.monotonic() > until_s:
                raise ClientError(
                    f"a transaction that has written to topic {topic!r} does not end.",
                    "To find it: ottla transaction list",
                )
            time.sleep(LOOK_PAUSE_S)
    return end
