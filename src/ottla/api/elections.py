"""Elections: the last ones of leaders and controllers. Ottla's own request, key 20007, not
advertised and not in Kafka.

The request has header v1, then JSON; the response has header v0, then JSON. An Apache Kafka broker
closes the connection.

    request   {"elections": 1}
    response  {"elections": 1, "broker": 1, "since_ms": 1700000000000, "count": 2,
               "controllers": [{"at_ms", "broker", "epoch"}, ...],
               "leaders": [{"at_ms", "topic", "partition", "former", "leader", "leader_epoch",
                            "why"}, ...]}, or
              {"elections": 1, "error": {"code", "message"}}

Newest first, of leaders at most MAX_ELECTIONS; `count` has them all. `former` and `leader` are -1
for none; `why` is one of `ottla.controller.elected`. Any broker says what it has seen since
`since_ms`, its start; the controller sees them as they happen.

Codes: bad_request, not_authorized. With an authorizer: Describe on the cluster, and of the topics
those that the client may describe.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.versions import ELECTIONS

KEY: Final = ELECTIONS
ACCESS: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)
VERSION: Final = 1


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """What this broker has seen, or why it does not say it."""
    if request.get("elections") != VERSION:
        return refuse(f"this broker supports version {VERSION} of the request")
    seen = context.broker.controller.elections
    return {
        "elections": VERSION,
        "broker": context.broker.config.id,
        "since_ms": seen.since_ms,
        "count": seen.count,
        "controllers": [each._asdict() for each in reversed(seen.controllers)],
        "leaders": [
            {"at_ms": at_ms, **each._asdict(), "why": each.why.value}
            for at_ms, each in seen.newest()
        ],
    }


def refuse(reason: str, code: str = "bad_request") -> dict[str, Any]:
    """The error's document."""
    return {"elections": VERSION, "error": {"code": code, "message": reason}}
