"""The response that refuses a request as a whole with one error code, for every request type.

Like `AbstractRequest.getErrorResponse` of Apache Kafka: the response lists what the request listed
(topics, partitions, groups), each with the error. An array of the response is filled from the
request's array of the same name, or from the one that `_SOURCES` names.
"""

from __future__ import annotations

from typing import Any, Final, get_args, get_origin

from ottla.protocol.codec import codec_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import message_class

_SOURCES: Final = {
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "partition_responses": ("partition_data",),
    "partitions": ("partitions", "partition_indexes"),
    "topics": ("topics",),
    "groups": ("groups", "group_ids"),
    "coordinators": ("coordinator_keys",),
    "results": (
        "topics",
        "resources",
        "groups_names",
        "dirs",
        "creations",
        "deletions",
        "upsertions",
        "users",
    ),
    "filter_results": ("filters",),
    "members": ("members",),
    "markers": ("markers",),
    "results_by_transaction": ("transactions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "topic_results": ("topics",),
    "results_by_partition": ("partitions",),
    "transaction_states": ("transactional_ids",),
    "entries": ("entries",),
    "entity": ("entity",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
}
_LISTS_NOTHING: Final = frozenset(
    {
        "OffsetFetchResponse",
        "LeaveGroupResponse",
        "AddPartitionsToTxnResponse",
        "DescribeLogDirsResponse",
        "OffsetDeleteResponse",
        "DescribeQuorumResponse",
        "ShareFetchResponse",
        "ShareAcknowledgeResponse",
        "AlterShareGroupOffsetsResponse",
        "DeleteShareGroupOffsetsResponse",
        "DescribeShareGroupOffsetsResponseGroup",
    }
)
"""With an error of its own, such a response, or such a part of one, has no list."""
_NULL: Final = frozenset(
    {"active_tasks", "standby_tasks", "warmup_tasks", "partitions_by_user_endpoint"}
)
"""Arrays of StreamsGroupHeartbeat whose absence says that nothing has changed."""
_WITHOUT_OWN: Final = frozenset({"DescribeLogDirsResponse"})
"""Their first versions have none, and no list either."""
_OF_A_PART: Final = frozenset({"topic_config_error_code"})
"""Codes that are for less than what is refused: they stay as they are."""
_RENAMED: Final = {
    "topic_name": "name", "partition_index": "partition", "index": "partition", "user": "name",
}  # fmt: skip
"""A field of the response, and its name in the request where that is another."""
_IDENTIFYING: Final = ("entity",)
"""Arrays that say what their element is about."""
_IDENTITY: Final = (
    "partition_index", "index", "partition_id", "group_id", "key", "transactional_id", "name",
)  # fmt: skip
"""The field that takes the value of an array of names or numbers."""


def error_response(request: Any, code: ErrorCode, *, is_part: bool = False) -> Any:
    """The response to this request message, with the error everywhere. `is_part`: it is for a part
    of what was asked; so whatever the request listed is listed.
    """
    cls = message_class(request.__api_key__, request.__version__, "response")
    return _filled(cls, request, code, is_part=is_part)


class _NoRequest:
    """In the place of a request that was not decoded."""

    __version__: Final = 0


def bare_error_response(key: int, version: int, code: ErrorCode) -> Any:
    """The response to a request that was not decoded, with the error where it has one field for
    all.
    """
    return _filled(message_class(key, version, "response"), _NoRequest(), code)


def has_error_code(key: int, version: int) -> bool:
    """Whether the response to this request type can say that it failed."""
    return _has_error(message_class(key, version, "response"))


def _has_error(cls: type) -> bool:
    codec = codec_of(cls)
    return any(isinstance(default, ErrorCode) for default in codec.defaults.values()) or any(
        _has_error(element) for element in _elements(cls).values()
    )


def _elements(cls: type) -> dict[str, type]:
    """The fields that are arrays of structs, with the class of the structs."""
    found: dict[str, type] = {}
    for name, annotation in _annotations(cls).items():
        for each in (annotation, *get_args(annotation)):
            if get_origin(each) is tuple and hasattr(get_args(each)[0], "__version__"):
                found[name] = get_args(each)[0]
    return found


def _annotations(cls: type) -> dict[str, Any]:
    return {name: field.type for name, field in cls.__dataclass_fields__.items()}  # type: ignore[attr-defined]


def _filled(cls: type, source: Any, code: ErrorCode, *, is_part: bool = False) -> Any:
    codec = codec_of(cls)
    elements = _elements(cls)
    values: dict[str, Any] = {}
    is_alone = not is_part and _is_alone(cls)
    for name, default in codec.defaults.items():
        if isinstance(default, ErrorCode):
            values[name] = default if name in _OF_A_PART else code
        elif name in _NULL:
            values[name] = None
        elif name in elements and is_alone:
            values[name] = ()
        elif name in elements:
            values[name] = _items(name, elements[name], source, code)
        else:
            values[name] = _copied(name, source, default)
    if not hasattr(source, "__version__"):
        identity = next(name for name in _IDENTITY if name in values)
        values[identity] = source
    return codec.cls(**values)


def _is_alone(cls: type) -> bool:
    name = cls.__name__
    return name in _LISTS_NOTHING and (
        "error_code" in codec_of(cls).defaults or name in _WITHOUT_OWN
    )


def _items(name: str, cls: type, source: Any, code: ErrorCode) -> tuple[Any, ...]:
    if not _has_error(cls) and name not in _IDENTIFYING:
        return ()  # data that a refused request does not get
    items: list[Any] = []
    for other in _SOURCES.get(name, ()):
        given = getattr(source, other, None) or ()
        if other == "dirs":  # AlterReplicaLogDirs answers by topic
            given = [topic for folder in given for topic in folder.topics]
        items += [_filled(cls, each, code) for each in given]
    return tuple(items)


def _copied(name: str, source: Any, default: Any) -> Any:
    """Names and numbers that identify; anything else keeps its default."""
    if not hasattr(source, "__version__"):
        return default
    for other in (name, _RENAMED.get(name, name)):
        value = getattr(source, other, None)
        if value is not None and not isinstance(value, tuple):
            return value
    return default
