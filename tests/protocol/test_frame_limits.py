import base64
import json

from ottla.api.journey import MAX_KEY_BYTES
from ottla.protocol.frame_limits import (
    MAX_ADMIN_ELEMENTS,
    MAX_JSON_BYTES,
    MAX_REQUEST_BYTES,
    budget_of,
    limits_by_type,
)
from ottla.protocol.versions import APIS, ENVELOPE, FOR_CONTROLLER, INTERNAL, JOURNEY, PRODUCE


def test_only_produce_may_have_frames_of_the_setting() -> None:
    limit_of = limits_by_type(100 << 20)
    assert limit_of(PRODUCE) == 100 << 20
    assert limit_of(3) == limit_of(-1) == MAX_REQUEST_BYTES
    assert limit_of(JOURNEY) == MAX_JSON_BYTES


def test_an_envelope_holds_any_request_for_the_controller() -> None:
    assert limits_by_type(100 << 20)(ENVELOPE) > MAX_REQUEST_BYTES


def test_a_smaller_setting_limits_every_type() -> None:
    assert {limits_by_type(1000)(key) for key in (PRODUCE, 3, ENVELOPE, JOURNEY)} == {1000}


def test_what_changes_the_cluster_has_a_tenth_of_the_elements() -> None:
    others = {"list_partition_reassignments"}
    for key in FOR_CONTROLLER - INTERNAL:
        is_decided_as_a_whole = APIS[key].name not in others
        assert (budget_of(key).elements == MAX_ADMIN_ELEMENTS) is is_decided_as_a_whole


def test_json_has_room_for_the_largest_journey() -> None:
    """And for no more than the event loop parses in a few milliseconds."""
    request = {"journey": 1, "topic": "t" * 249, "partition": 2**31 - 1}
    key = base64.b64encode(bytes(MAX_KEY_BYTES)).decode()
    size_bytes = len(json.dumps({**request, "key": key})) + 1_024  # with a client id in the header
    assert size_bytes <= MAX_JSON_BYTES <= 128 << 10
