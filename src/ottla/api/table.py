"""Which module handles which request type. Each is imported at its first request."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from ottla.api.context import Context
from ottla.network.handlers import Answer, Handler, Handlers, always, never
from ottla.protocol.errors import DecodeError
from ottla.protocol.frame_limits import MAX_JSON_BYTES
from ottla.protocol.versions import (
    APIS,
    BROKER_PROOF,
    ELECTIONS,
    ENVELOPE,
    GROUP_HISTORY,
    INTERNAL,
    JOURNEY,
    JOURNEY_GROUPS,
    KEY_OFFSETS,
    METADATA_DELTAS,
    REFUSED_BELOW,
    SEGMENTS,
)

_IN_JSON: Final = {
    JOURNEY: "journey",
    METADATA_DELTAS: "metadata_deltas",
    JOURNEY_GROUPS: "journey_groups",
    BROKER_PROOF: "broker_proof",
    GROUP_HISTORY: "group_history",
    KEY_OFFSETS: "key_offsets",
    SEGMENTS: "segments",
    ELECTIONS: "elections",
}
_BETWEEN_BROKERS: Final = (METADATA_DELTAS, JOURNEY_GROUPS)


def _in_json(handle: Any, refuse: Callable[[str], dict[str, Any]] | None) -> Answer:
    """`refuse` makes the answer to a request that is no JSON object; without it such a request ends
    its connection.
    """

    async def answer(body: bytes, context: Context) -> bytes:
        try:
            request = _read(body)
        except DecodeError as error:
            if refuse is None:
                raise
            return json.dumps(refuse(str(error))).encode()
        return json.dumps(await handle(request, context)).encode()

    return answer


def _read(body: bytes) -> dict[str, Any]:
    """Raises DecodeError, also where the request is nested too deep for the parser.

    The frame reader only looks at the limits of large frames.
    """
    if len(body) > MAX_JSON_BYTES:
        raise DecodeError(f"the request has {len(body):,} bytes; the maximum is {MAX_JSON_BYTES:,}")
    try:
        request = json.loads(body)
    except RecursionError:
        raise DecodeError("the request is nested too deep") from None
    except ValueError as error:
        raise DecodeError(f"the request is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise DecodeError("the request is not a JSON object")
    return request


@cache
def find(key: int) -> Handler | None:
    """The handler of the request type `key`, or None."""
    if key in _IN_JSON:
        module = import_module(f"ottla.api.{_IN_JSON[key]}")
        answer = _in_json(module.handle_json, getattr(module, "refuse", None))
        between = always if key in _BETWEEN_BROKERS else never
        return Handler(key, 0, 0, answer, True, module.ACCESS, between)
    if key not in APIS or key == ENVELOPE:  # the dispatcher opens envelopes
        return None
    api = APIS[key]
    module = import_module(f"ottla.api.{api.name}")
    assert key == module.KEY
    lowest = max(api.min_version, REFUSED_BELOW.get(key, 0))
    between = always if key in INTERNAL else getattr(module, "is_between_brokers", never)
    return Handler(
        key,
        lowest,
        api.max_version,
        module.handle,
        access=module.ACCESS,
        is_between_brokers=between,
        takes_turns=getattr(module, "TAKES_TURNS", False),
        check_here=getattr(module, "check_here", None),
    )


ADVERTISED: Final = tuple(
    (api.key, api.min_version, api.max_version) for api in APIS.values() if api.key not in INTERNAL
)


def authorized(handlers: Handlers) -> Handlers:
    """The same handlers, asked only for what a client may do; imported only with an authorizer."""
    made: Handlers = import_module("ottla.api.authorized").authorized(handlers)
    return made


HANDLERS: Final = Handlers(ADVERTISED, find, authorized)
