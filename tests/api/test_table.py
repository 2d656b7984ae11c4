import pytest

from ottla.api.table import ADVERTISED, find
from ottla.protocol.errors import DecodeError
from ottla.protocol.messages import message_class
from ottla.protocol.versions import APIS, ENVELOPE, INTERNAL, JOURNEY, METADATA_DELTAS, PRODUCE

ANSWERED = [api for api in APIS.values() if api.key != ENVELOPE]


@pytest.mark.parametrize("key", [api.key for api in ANSWERED], ids=[api.name for api in ANSWERED])
def test_every_request_advertised_has_its_handler_and_its_messages(key: int) -> None:
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


def test_produce_is_advertised_from_0_and_taken_from_3() -> None:
    """Or librdkafka stops compressing (KAFKA-18659)."""
    handler = find(PRODUCE)
    assert handler is not None
    assert (PRODUCE, 0, 13) in ADVERTISED
    assert handler.min_version == 3


@pytest.mark.parametrize("key", [-1, 4, 24, ENVELOPE, 999, METADATA_DELTAS + 1])
def test_what_is_not_served_has_no_handler(key: int) -> None:
    assert find(key) is None


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000])
async def test_the_journey_wants_a_json_object(body: bytes) -> None:
    handler = find(JOURNEY)
    assert handler is not None
    assert handler.takes_json
    with pytest.raises(DecodeError):
        await handler.answer(body, None)  # type: ignore[arg-type]
