"""ClusterNews (key 20001, JSON): what a broker asks of its controller, again and again.

Asked: {"broker", "broker_epoch", "controller_epoch", "version", "wait_ms", "want_shut_down"}.
Answered: {"error": "not_controller"}, or {"controller", "controller_epoch", "version"} with "news"
(a list) or "snapshot", and "should_shut_down" where that was wanted and nothing holds the broker.
The connection on which a broker asks is its sign of life; see `broker.broker_watch`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ottla.broker.call import Call
from ottla.broker.news_feed import UNKNOWN_VERSION
from ottla.protocol.errors import ApiError, DecodeError

MAX_WAIT_MS: Final = 10_000
_NOT_CONTROLLER: Final = {"error": "not_controller"}


async def handle_json(request: dict[str, Any], call: Call) -> dict[str, Any]:
    """The answer; raises DecodeError where the question is none."""
    node, controller = call.node, call.node.controller
    broker_id, epoch, version, wait_ms = (
        _number(request, name) for name in ("broker", "controller_epoch", "version", "wait_ms")
    )
    feed = controller.feed
    if feed is None:
        return _NOT_CONTROLLER
    if epoch != node.image.controller_epoch:
        version = UNKNOWN_VERSION
    leaving = request.get("want_shut_down") is True
    done = False
    if leaving:
        try:
            done = await controller.shut_down(broker_id, _number(request, "broker_epoch"))
        except ApiError:
            return _NOT_CONTROLLER
    try:
        await feed.wait_beyond(version, 0 if leaving else min(wait_ms, MAX_WAIT_MS))
    except asyncio.CancelledError:
        controller.hung_up(broker_id)
        raise
    if controller.feed is not feed:
        return _NOT_CONTROLLER
    answer = {
        "controller": node.config.id,
        "controller_epoch": node.image.controller_epoch,
        **feed.since(version),
    }
    if leaving:
        answer["should_shut_down"] = done
    return answer


def _number(request: dict[str, Any], name: str) -> int:
    value = request.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DecodeError(f"{name} is no number")
    return value
