"""Makes a cluster create its internal topics, with FindCoordinator requests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from ottla.client.coordinators import Coordinated
from ottla.protocol.errors import ErrorCode
from ottla.testing.broker_request import NoResponseError, kit_client
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

ANY_KEY: Final = "ottla"
PAUSE_S: Final = 0.05


TOPICS: Final = {
    Coordinated.GROUP: "__consumer_offsets",
    Coordinated.TRANSACTION: "__transaction_state",
}


def create_internal_topic(
    bootstrap: str,
    kind: Coordinated,
    timeout_s: float,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Wait until a group or a transactional id has a coordinator; `bootstrap` is one broker's
    address, `settings` are the kit's about security.

    Raises KitError with the broker's reason if there is none within `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    while True:
        reason = _refusal(bootstrap, kind, settings)
        if reason is None:
            return
        if time.monotonic() > until:
            raise KitError(f"there is no {TOPICS[kind]} after {timeout_s:g} s: {reason}")
        time.sleep(PAUSE_S)


def _refusal(bootstrap: str, kind: Coordinated, settings: Mapping[str, str] | None) -> str | None:
    """Why there is no coordinator now, or None."""
    try:
        with kit_client(bootstrap, settings=settings) as client:
            (found,) = client.find_coordinators(kind, [ANY_KEY])
    except NoResponseError as error:
        return str(error)
    if found.error is ErrorCode.none:
        return None
    return str(found.message or found.error.name)
