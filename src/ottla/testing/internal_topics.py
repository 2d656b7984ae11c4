"""Makes a cluster create its internal topics, with FindCoordinator requests."""

from __future__ import annotations

import time
from typing import Final

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import NoResponseError, ask_broker
from ottla.testing.errors import KitError

FIND_COORDINATOR: Final = 10
_VERSION: Final = 3
_GROUP: Final = 0
PAUSE_S: Final = 0.05


def create_offsets_topic(bootstrap: str, timeout_s: float) -> None:
    """Wait until a group has a coordinator; `bootstrap` is one broker's address.

    Raises KitError with the broker's reason if there is none within `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    while True:
        reason = _refusal(bootstrap)
        if reason is None:
            return
        if time.monotonic() > until:
            raise KitError(f"there is no __consumer_offsets after {timeout_s:g} s: {reason}")
        time.sleep(PAUSE_S)


def _refusal(bootstrap: str) -> str | None:
    """Why no group can be used now, or None."""
    build = messages_of(FIND_COORDINATOR, _VERSION, "request")
    request = build.FindCoordinatorRequest(key="ottla", key_type=_GROUP)
    try:
        response = ask_broker(bootstrap, request)
    except NoResponseError as error:
        return str(error)
    if response.error_code is ErrorCode.none:
        return None
    return str(response.error_message or response.error_code.name)
