"""Messages of a schema: their indexes and names, and the one that it is about."""

import base64

import pytest

from ottla.registry.protobuf_messages import Messages, is_map, is_repeated
from ottla.registry.registered import PROTOBUF, Registered, SchemaError

START = 'syntax = "proto3"; package air; '


def messages(text: str) -> Messages:
    return Messages(Registered(1, PROTOBUF, START + text))


def test_indexes_name_messages_and_those_nested_in_them() -> None:
    found = messages(
        "message Plane {} message Flight { map<string, int32> seats = 1; message Leg {"
        "message Stop {} } Plane plane = 2; repeated Leg legs = 3; }"
    )

    assert {at: one.full_name for at, one in found.by_index.items()} == {
        (0,): "air.Plane",
        (1,): "air.Flight",
        # The map's entries are nested message 0.
        (1, 1): "air.Flight.Leg",
        (1, 1, 0): "air.Flight.Leg.Stop",
    }
    assert found.indexes_of("air.Flight.Leg") == (1, 1)
    assert found.main() == "air.Flight"
    fields = found.by_name["air.Flight"].fields_by_name
    assert [is_map(fields[name]) for name in ("seats", "plane", "legs")] == [True, False, False]
    assert [is_repeated(fields[name]) for name in ("seats", "plane", "legs")] == [True, False, True]


def test_a_schema_of_several_messages_is_about_none() -> None:
    found = messages("message A { A next = 1; } message B {}")
    assert (found.roots(), found.main()) == (["air.A", "air.B"], None)
    assert messages("message A { B b = 1; } message B { A a = 1; }").main() is None


def test_a_schema_that_cannot_be_used_is_one_sentence() -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    with pytest.raises(SchemaError, match=r"^schema 1 defines no message$"):
        messages("enum E { NONE = 0; }")
    file = FileDescriptorProto(name="x", syntax="proto3")
    field = file.message_type.add(name="A").field.add(name="b", number=1, label=1, type=11)
    field.type_name = ".air.B"
    text = base64.b64encode(file.SerializeToString()).decode()
    with pytest.raises(SchemaError, match=r"^schema 2 is no Protobuf schema: .*air\.B"):
        Messages(Registered(2, PROTOBUF, text))
