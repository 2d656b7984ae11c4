"""Makes a chosen replica the leader: it becomes the preferred one (a reassignment to the same
brokers in another order, KIP-455), and the preferred replica is elected (KIP-460).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.client.admin.elections import elect_leaders
from ottla.client.admin.reassignments import reassign
from ottla.protocol.errors import ErrorCode
from ottla.testing.broker_request import kit_client
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

_POLL_S: Final = 0.05


def elect(
    address: str,
    topic: str,
    partition: int,
    replicas: Sequence[int],
    timeout_s: float,
    settings: Mapping[str, str] | None = None,
) -> None:
    """The first of `replicas`, which are the partition's, becomes its leader. Raises KitError with
    the controller's reason, also if the replica is not in sync within `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    with kit_client(address, retry_for_s=timeout_s, settings=settings) as client:
        reassign(client, {topic: {partition: replicas}})
        while failed := elect_leaders(client, [(topic, partition)], unclean=False):
            (refusal,) = failed.values()
            is_early = refusal.code is ErrorCode.preferred_leader_not_available
            if not is_early or time.monotonic() > until:
                raise KitError(f"no election of {topic}-{partition}: {refusal.code.name.upper()}")
            time.sleep(_POLL_S)
