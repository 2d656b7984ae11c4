"""Protobuf data as JSON and back."""

from typing import Any

import pytest

from ottla.registry.framing import head
from ottla.registry.protobuf_json import (
    ProtobufError,
    decoded,
    encoded,
    messages_of,
)
from ottla.registry.registered import PROTOBUF, Registered

FLIGHT = """syntax = "proto3";
package air;
import "google/protobuf/timestamp.proto";
message Flight {
  int64 flight_id = 1;
  optional string tail = 2;
  google.protobuf.Timestamp at = 3;
  map<string, int32> seats = 4;
  oneof cause { string weather = 5; int32 code = 6; }
  bytes raw = 7;
  State state = 8;
  enum State { NONE = 0; LATE = 1; }
}
"""
NOTE = "message Note { string text = 1; message Inner { int32 n = 1; } }"
AT = "2013-01-01T05:00:00.000001Z"


def read(text: str, schema_id: int = 5) -> Any:
    return messages_of(Registered(schema_id, PROTOBUF, text))


def test_what_is_encoded_is_decoded() -> None:
    flight = read(FLIGHT)
    line = {"flight_id": "9007199254740993", "at": AT, "seats": {"a": 1}, "code": 0, "raw": "/w=="}
    data = encoded(flight, line | {"state": "LATE"})

    assert data.startswith(head(5) + b"\0")
    assert decoded(flight, data) == line | {"state": "LATE"}
    # What proto3 gives a default is shown; what can be absent is not.
    assert decoded(flight, head(5) + b"\0") == {
        "flight_id": "0", "seats": {}, "raw": "", "state": "NONE"
    }  # fmt: skip
    assert decoded(flight, encoded(flight, {"flightId": 3}))["flight_id"] == "3"


def test_a_message_of_several_is_named() -> None:
    both = read(FLIGHT + NOTE)
    inner = {"@type": "air.Note.Inner", "n": 4}
    data = encoded(both, inner)

    # Two indexes, 1 and 0, in zigzag.
    assert data == head(5) + b"\x04\x02\x00" + b"\x08\x04"
    assert decoded(both, data) == inner
    assert decoded(both, encoded(both, {"@type": "air.Note"})) == {"@type": "air.Note", "text": ""}
    with pytest.raises(ProtobufError, match=r"has the messages air.Flight, air.Note: name the one"):
        encoded(both, {"text": "x"})
    with pytest.raises(ProtobufError, match=r"no message B: it has air.Flight, air.Note, air.Note"):
        encoded(both, {"@type": "B"})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"flight_id": "x"}, "Failed to parse flight_id field"),
        ({"none": 1}, 'has no field named "none"'),
        ({"flight_id": 1 << 64}, "flight_id"),
        ({"weather": "x", "code": 1}, "multiple"),
        ([1], "."),
        ("text", "."),
        (3, "."),
        (None, "."),
    ],
)
def test_json_that_does_not_fit_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(ProtobufError, match=reason):
        encoded(read(FLIGHT), value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "^its message indexes cannot be read: no message indexes$"),
        (b"\x02\x08", r"^the schema has no message with the indexes \[4\]$"),
        (b"\0\xff", "^it is not Protobuf data of air.Flight: "),
        (b"\0\x0a\x05ab", "^it is not Protobuf data of air.Flight: "),
        (b"\0\x1a\x08\x08\xff\xff\xff\xff\xff\xff\x0f", "^it is not Protobuf data of air.Flight: "),
    ],
)
def test_data_of_another_schema_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ProtobufError, match=reason):
        decoded(read(FLIGHT), head(5) + data)


def test_a_schema_with_references() -> None:
    plane = 'syntax = "proto3"; package air; message Plane { string tail = 1; }'
    text = 'syntax = "proto3"; import "plane.proto"; message F { air.Plane plane = 1; }'
    inner = Registered(1, PROTOBUF, plane, "plane", 2)
    found = messages_of(Registered(7, PROTOBUF, text, references=(("plane.proto", inner),)))

    assert decoded(found, encoded(found, {"plane": {"tail": "N1"}})) == {"plane": {"tail": "N1"}}
