import json
from typing import Any

import pytest

from ottla.api.table import ADVERTISED, find
from ottla.protocol.access import BETWEEN_BROKERS, Resource
from ottla.protocol.errors import DecodeError
from ottla.protocol.messages import message_class, messages_of
from ottla.protocol.versions import (
    ADD_PARTITIONS_TO_TXN,
    APIS,
    ELECTIONS,
    ENVELOPE,
    INTERNAL,
    JOURNEY,
    JOURNEY_GROUPS,
    METADATA_DELTAS,
    PRODUCE,
)

FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH = 1, 2, 23
ANSWERED = [api for api in APIS.values() if api.key != ENVELOPE]


SHARE_STATE = range(83, 88)
"""Between brokers, and advertised."""


@pytest.mark.parametrize("key", [api.key for api in ANSWERED], ids=[api.name for api in ANSWERED])
def test_every_advertised_request_has_a_handler_and_messages(key: int) -> None:
    handler = find(key)
    assert handler is not None
    assert handler.key == key
    assert not handler.takes_json
    advertised = [each for each in ADVERTISED if each[0] == key]
    if key in INTERNAL:
        assert advertised == []
    else:
        assert handler.max_version == advertised[0][2]
    for version in range(handler.min_version, handler.max_version + 1):
        for kind in ("request", "response"):
            assert message_class(key, version, kind)


OPERATIONS = {
    Resource.TOPIC: "READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS",
    Resource.GROUP: "READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS",
    Resource.CLUSTER: (
        "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE"
    ),
    Resource.TRANSACTIONAL_ID: "DESCRIBE WRITE",
}
"""What Kafka's ACLs know of each resource (AclEntry.supportedOperations)."""
OPEN_TO_ALL = {17, 18, 36}
"""SASL and ApiVersions come before authentication."""


@pytest.mark.parametrize(
    "key", [*(api.key for api in ANSWERED), JOURNEY, METADATA_DELTAS, JOURNEY_GROUPS]
)
def test_every_handler_declares_its_permissions(key: int) -> None:
    handler = find(key)
    assert handler is not None
    assert bool(handler.access) is (key not in OPEN_TO_ALL)
    for operation, resource in handler.access:
        assert operation.name in OPERATIONS[resource].split()
    between_brokers = key in (*INTERNAL, *SHARE_STATE, METADATA_DELTAS, JOURNEY_GROUPS)
    assert (handler.access == BETWEEN_BROKERS) is between_brokers


@pytest.mark.parametrize("key", [api.key for api in ANSWERED], ids=[api.name for api in ANSWERED])
def test_requests_of_other_brokers_are_marked(key: int) -> None:
    """By their type, or by a replica id; clients' default values do not mark them."""
    handler = find(key)
    assert handler is not None
    for version in range(handler.min_version, handler.max_version + 1):
        build = messages_of(key, version, "request")
        request = getattr(build, message_class(key, version, "request").__name__)
        if key == FETCH:
            state = build.ReplicaState(replica_id=2, replica_epoch=1)
            assert handler.is_between_brokers(request(replica_id=2, replica_state=state))
            state = build.ReplicaState(replica_id=-1, replica_epoch=-1)
            assert not handler.is_between_brokers(request(replica_id=-1, replica_state=state))
        elif key in (LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH):
            has_replica_id = key == LIST_OFFSETS or version >= 3
            assert handler.is_between_brokers(request(replica_id=2)) is has_replica_id
            assert not handler.is_between_brokers(request(replica_id=-1))
        elif key == ADD_PARTITIONS_TO_TXN:
            assert handler.is_between_brokers(request()) is (version >= 4)
        else:
            assert handler.is_between_brokers(request()) is (key in (*INTERNAL, *SHARE_STATE))


def test_produce_is_advertised_from_0_and_accepted_from_3() -> None:
    """Or librdkafka stops compressing (KAFKA-18659)."""
    handler = find(PRODUCE)
    assert handler is not None
    assert (PRODUCE, 0, 13) in ADVERTISED
    assert handler.min_version == 3


@pytest.mark.parametrize("key", [-1, 4, ENVELOPE, 999, ELECTIONS + 1])
def test_unsupported_requests_have_no_handler(key: int) -> None:
    assert find(key) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"7", "not a JSON object"),
        (b"\xff", "not JSON"),
        (b'{"a":' + b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 20_000, "nested too deep"),
        (b'{"a":' + b"9" * 100_000 + b"}", "not JSON"),
        (b'{"a":[' + b"[]," * 100_000 + b"0]}", "300,009 bytes; the maximum is 131,072"),
    ],
    ids=["empty", "begun", "list", "number", "no text", "lists", "objects", "digits", "large"],
)
async def test_requests_require_a_json_object(body: bytes, message: str) -> None:
    """A client of the journey gets the reason, another broker is disconnected."""
    journey, deltas = find(JOURNEY), find(METADATA_DELTAS)
    assert journey is not None
    assert deltas is not None
    assert journey.takes_json
    answer: Any = await journey.answer(body, None)  # type: ignore[arg-type]
    error = json.loads(answer)["error"]
    assert error["code"] == "bad_request"
    assert message in error["message"]
    with pytest.raises(DecodeError, match=message):
        await deltas.answer(body, None)  # type: ignore[arg-type]
