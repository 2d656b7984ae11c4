"""MetadataDeltas (key 20001, JSON): a broker fetches metadata deltas from its controller.

Request: {"broker", "broker_epoch", "controller_epoch", "version", "wait_ms", "want_shut_down"}.
Response: {"error": "not_controller"}, or {"controller", "controller_epoch", "version"} with
"deltas" (a list) or "snapshot". It has "should_shut_down" if the broker asked to shut down and no
longer leads any partition. The connection also shows that the broker is alive: see
`cluster.broker_watch`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ottla.api.broker_requests import REFUSED, is_from_broker
from ottla.api.context import Context
from ottla.cluster.metadata_log import UNKNOWN_VERSION
from ottla.protocol.access import BETWEEN_BROKERS
from ottla.protocol.errors import ApiError, DecodeError, ErrorCode

MAX_WAIT_MS: Final = 10_000
ACCESS: Final = BETWEEN_BROKERS
_ASK_AGAIN: Final = (ErrorCode.stale_broker_epoch, ErrorCode.broker_not_available)
"""The broker may not shut down yet: this controller does not know its registration."""
_NOT_CONTROLLER: Final = {"error": "not_controller"}


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """The response; raises DecodeError if the request is invalid."""
    broker, controller = context.broker, context.broker.controller
    broker_id, epoch, version, wait_ms = (
        _number(request, name) for name in ("broker", "controller_epoch", "version", "wait_ms")
    )
    if not is_from_broker(context, broker_id):
        return {"error": REFUSED.name}
    metadata_log = controller.metadata_log
    if metadata_log is None:
        return _NOT_CONTROLLER
    if epoch != broker.image.controller_epoch:
        version = UNKNOWN_VERSION
    leaving = request.get("want_shut_down") is True
    done = False
    if leaving:
        try:
            done = await controller.shut_down(broker_id, _number(request, "broker_epoch"))
        except ApiError as error:
            if error.code not in _ASK_AGAIN:
                return _NOT_CONTROLLER
    try:
        await metadata_log.wait_past(version, 0 if leaving else min(wait_ms, MAX_WAIT_MS))
    except asyncio.CancelledError:
        controller.disconnected(broker_id)
        raise
    missing = await metadata_log.since(version)
    if controller.metadata_log is not metadata_log:
        return _NOT_CONTROLLER
    answer = {
        "controller": broker.config.id,
        "controller_epoch": broker.image.controller_epoch,
        **missing,
    }
    if leaving:
        answer["should_shut_down"] = done
    return answer


def _number(request: dict[str, Any], name: str) -> int:
    value = request.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DecodeError(f"{name} is not a number")
    return value
