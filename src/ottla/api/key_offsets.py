"""KeyOffsets: where a key's records are. Ottla's own request, key 20005, not advertised and not in
Kafka.

The request has header v1, then JSON; the response has header v0, then JSON. An Apache Kafka broker
closes the connection.

    request   {"key_offsets": 1, "topic": "flights", "partition": 2, "key": "base64",
               "begin": 0, "end": 1234, "from_end": true, "most": 50}
    response  {"key_offsets": 1, "offsets": [7, 90], "begin": 0, "end": 1234, "records": 1234}, or
              {"key_offsets": 1, "error": {"code", "message"}}

The partition's leader answers, for a part of the wanted offsets if they are many: those of the
response's `begin` to before its `end`, at the wanted end or beginning. Who asks goes on with the
rest. `records` is about how many were searched.

Codes: bad_request, unknown_partition, not_leader, storage_error, not_available, not_authorized.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.journey import MAX_OFFSET, MAX_PARTITION, is_count, read_key
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versions import KEY_OFFSETS
from ottla.storage.after_rebuild import after_rebuild
from ottla.tracing.find_message import JourneyError
from ottla.tracing.key_offsets import MAX_OFFSETS, find_offsets

KEY: Final = KEY_OFFSETS
ACCESS: Final = (Access(Operation.READ, Resource.TOPIC),)
VERSION: Final = 1
_CODES: Final = {
    ErrorCode.not_leader_or_follower: "not_leader",
    ErrorCode.unknown_topic_or_partition: "unknown_partition",
    ErrorCode.kafka_storage_error: "storage_error",
    ErrorCode.corrupt_message: "storage_error",
    ErrorCode.invalid_record: "storage_error",
}


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """The offsets, or why there is no answer."""
    why = what_is_wrong(request)
    if why is not None:
        return refuse(why)
    try:
        key = read_key(request.get("key"))
    except JourneyError as error:
        return refuse(str(error))
    if key is None:
        return refuse("`key` must be base64")
    broker = context.broker
    try:
        partition = broker.partitions.find(request["topic"], request["partition"])
        # One search or journey at a time, so that many requests wait in a queue.
        async with broker.timelines.explaining.next():
            found = await after_rebuild(
                partial(
                    find_offsets,
                    partition,
                    key,
                    request["begin"],
                    request["end"],
                    from_end=request["from_end"],
                    most=request["most"],
                )
            )
    except ApiError as error:
        return refuse(error.message or error.code.name, _CODES.get(error.code, "not_available"))
    return {"key_offsets": VERSION, **found._asdict()}


def what_is_wrong(request: dict[str, Any]) -> str | None:
    """With the request; None if nothing is. Its key is checked later."""
    if request.get("key_offsets") != VERSION:
        return f"this broker supports version {VERSION} of the request"
    topic, most = request.get("topic"), request.get("most")
    if not isinstance(topic, str) or not topic:
        return "`topic` must be a name"
    if not is_count(request.get("partition"), MAX_PARTITION):
        return "`partition` must be an integer of 0 or more"
    for name in ("begin", "end"):
        if not is_count(request.get(name), MAX_OFFSET):
            return f"`{name}` must be an integer of 0 or more"
    if not isinstance(request.get("from_end"), bool):
        return "`from_end` must be true or false"
    if not is_count(most, MAX_OFFSETS) or not most:
        return f"`most` must be an integer of 1 to {MAX_OFFSETS}"
    return None


def refuse(reason: str, code: str = "bad_request") -> dict[str, Any]:
    """The error's document."""
    return {"key_offsets": VERSION, "error": {"code": code, "message": reason}}
