"""The journey of one message: Ottla's own request, key 20000, not advertised and not in Kafka.

The request has header v1, then JSON; the response has header v0, then JSON. An Apache Kafka broker
closes the connection.

    request   {"journey": 1, "topic": "flights", "partition": 2 or null, and one of
               "offset": 1234, "key": "base64", "latest": true;
               with a key perhaps "all": true}
    response  the document of `ottla.journey.explain`, with "all" that of
              `ottla.tracing.key_list`, or
              {"journey": 1, "error": {"code", "message", and what helps}}

Without an offset, a key or `latest`, the response is an error that lists the partitions and their
offsets. If no partition is given, a key is searched in all partitions that this broker leads, and
`elsewhere` lists the partitions for which other brokers should be asked.

Codes: bad_request, unknown_topic, unknown_partition, which_offset, key_not_found, empty,
not_leader, storage_error, not_available.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from ottla.api.context import Context
from ottla.journey.explain import VERSION
from ottla.journey.moment import Document
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.versions import JOURNEY
from ottla.tracing.find_message import JourneyError, MessageQuery
from ottla.tracing.trace import trace

KEY: Final = JOURNEY
ACCESS: Final = (
    Access(Operation.READ, Resource.TOPIC),
    Access(Operation.DESCRIBE, Resource.GROUP),
)
MAX_OFFSET: Final = 2**63 - 1
MAX_PARTITION: Final = 2**31 - 1
MAX_KEY_BYTES: Final = 65_536


async def handle_json(request: dict[str, Any], context: Context) -> dict[str, Any]:
    """The journey's document, or the error's."""
    try:
        return await trace(read_query(request), context.broker)
    except JourneyError as error:
        return error_document(error)


def refuse(reason: str) -> Document:
    """The answer to a request that is no JSON object."""
    return error_document(bad_request(reason))


def error_document(error: JourneyError) -> Document:
    fields = {"code": error.code, "message": str(error), **error.more}
    document: Document = {"journey": VERSION, "error": fields}
    return document | ({"elsewhere": error.elsewhere} if error.elsewhere else {})


def read_query(request: dict[str, Any]) -> MessageQuery:
    """The fields of the request. Raises JourneyError that names the invalid one."""
    if request.get("journey") != VERSION:
        raise bad_request(f"this broker supports version {VERSION} of the journey")
    topic, partition, offset = (request.get(name) for name in ("topic", "partition", "offset"))
    if not isinstance(topic, str) or not topic:
        raise bad_request("`topic` must be a name")
    if partition is not None and not is_count(partition, MAX_PARTITION):
        raise bad_request("`partition` must be an integer of 0 or more")
    if offset is not None and not is_count(offset, MAX_OFFSET):
        raise bad_request("`offset` must be an integer of 0 or more")
    key = read_key(request.get("key"))
    latest = request.get("latest", False)
    if not isinstance(latest, bool):
        raise bad_request("`latest` must be true or false")
    if (offset is not None) + (key is not None) + latest > 1:
        raise bad_request("`offset`, `key` and `latest` exclude each other")
    all_of_key = request.get("all", False)
    if not isinstance(all_of_key, bool):
        raise bad_request("`all` must be true or false")
    if all_of_key and key is None:
        raise bad_request("`all` needs a `key`")
    return MessageQuery(topic, partition, offset, key, latest, all_of_key)


def read_key(value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        key = base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise bad_request("`key` must be base64") from None
    if len(key) > MAX_KEY_BYTES:
        raise bad_request(f"`key` must have at most {MAX_KEY_BYTES} bytes")
    return key


def is_count(value: Any, maximum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= maximum


def bad_request(message: str) -> JourneyError:
    return JourneyError("bad_request", message)
