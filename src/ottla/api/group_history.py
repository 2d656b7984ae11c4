"""GroupHistory: Ottla's own request, key 20004, not advertised and not in Kafka.

The request has header v1, then JSON; the response has header v0, then JSON. An Apache Kafka broker
closes the connection.

    request   {"group_history": 1, "group": "billing"}
    response  {"group_history": 1, "broker": 1, "is_coordinator": true, "entries": [...]}, or
              {"group_history": 1, "error": {"code", "message"}}

Each entry is a document of `ottla.groups.history.fold`, oldest first, with `number`, which grows;
that of a rebalance under way is null. A broker knows what happened while it was the coordinator, so
all brokers are asked.

Codes: bad_request, not_authorized.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.versions import GROUP_HISTORY
from ottla.shards.encoding import fits_string

KEY: Final = GROUP_HISTORY
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.GROUP),)
VERSION: Final = 1


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """What this broker knows of the group, or why it does not say it."""
    if request.get("group_history") != VERSION:
        return refuse(f"this broker supports version {VERSION} of the history")
    group = name_in(request)
    if group is None:
        return refuse("`group` must be a name")
    broker = context.broker
    is_coordinator = broker.groups.is_coordinator_of(group)
    entries = await broker.histories.of(group, is_coordinator=is_coordinator)
    return {
        "group_history": VERSION,
        "broker": broker.config.id,
        "is_coordinator": is_coordinator,
        "entries": entries,
    }


def name_in(request: dict[str, Any]) -> str | None:
    """The group's; None if it can be that of no group, such as half of a surrogate pair."""
    group = request.get("group")
    if not isinstance(group, str) or not group:
        return None
    try:
        return group if fits_string(group) else None
    except UnicodeEncodeError:
        return None


def refuse(reason: str, code: str = "bad_request") -> dict[str, Any]:
    """The error's document."""
    return {"group_history": VERSION, "error": {"code": code, "message": reason}}
