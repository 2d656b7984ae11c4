"""Fences a transactional producer as Kafka's Admin.fenceProducers does, by InitProducerId."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.admin.transactions import Transactions
from ottla.testing.broker_request import kit_client
from ottla.testing.errors import is_for_the_test

__tracebackhide__ = is_for_the_test

_TIMEOUT_MS: Final = 60_000
"""The transaction timeout until the next producer sets its own; Kafka's default."""


def fence_producer(
    bootstrap: str, transactional_id: str, settings: Mapping[str, str] | None = None
) -> None:
    """Returns when its transaction is aborted. Raises KitError."""
    with kit_client(bootstrap, settings=settings) as client:
        Transactions(client).fence(transactional_id, _TIMEOUT_MS)
