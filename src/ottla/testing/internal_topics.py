"""Makes a cluster create its internal topics, with FindCoordinator requests."""

from __future__ import annotations

import time
from enum import IntEnum
from typing import Final

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import NoResponseError, ask_broker
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

FIND_COORDINATOR: Final = 10
_VERSION: Final = 3
PAUSE_S: Final = 0.05


class Coordinated(IntEnum):
    """What a coordinator is for: the key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


TOPICS: Final = {
    Coordinated.GROUP: "__consumer_offsets",
    Coordinated.TRANSACTION: "__transaction_state",
}


def create_internal_topic(bootstrap: str, kind: Coordinated, timeout_s: float) -> None:
    """Wait until a group or a transactional id has a coordinator; `bootstrap` is one broker's
    address.

    Raises KitError with the broker's reason if there is none within `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    while True:
        reason = _refusal(bootstrap, kind)
        if reason is None:
            return
        if time.monotonic() > until:
            raise KitError(f"there is no {TOPICS[kind]} after {timeout_s:g} s: {reason}")
        time.sleep(PAUSE_S)


def _refusal(bootstrap: str, kind: Coordinated) -> str | None:
    """Why there is no coordinator now, or None."""
    build = messages_of(FIND_COORDINATOR, _VERSION, "request")
    request = build.FindCoordinatorRequest(key="ottla", key_type=kind)
    try:
        response = ask_broker(bootstrap, request)
    except NoResponseError as error:
        return str(error)
    if response.error_code is ErrorCode.none:
        return None
    return str(response.error_message or response.error_code.name)
