"""Schemas as descriptors, from text and from serialized descriptors, with what they import."""

import base64
import subprocess

import pytest

from ottla.registry import protobuf_files
from ottla.registry.protobuf_files import descriptor_set
from ottla.registry.registered import PROTOBUF, Registered, SchemaError

PLANE = Registered(
    1, PROTOBUF, 'syntax = "proto3"; package air; message Plane { string tail = 1; }'
)
FLIGHT = """syntax = "proto3";
package air;
import "google/protobuf/timestamp.proto";
import "confluent/meta.proto";
import "google/type/money.proto";
import "air/plane.proto";
message Flight {
  Plane plane = 1;
  google.protobuf.Timestamp at = 2;
  google.type.Money price = 3;
}
"""


def files(schema: Registered) -> list[str]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    return [one.name for one in FileDescriptorSet.FromString(descriptor_set(schema)).file]


def test_text_is_compiled_with_its_references() -> None:
    found = files(Registered(2, PROTOBUF, FLIGHT, references=(("air/plane.proto", PLANE),)))

    assert found[-1] == "schema-2.proto"
    assert {"air/plane.proto", "google/protobuf/timestamp.proto"} < set(found)
    # Confluent's own file imports that of descriptors, which is before it.
    assert found.index("google/protobuf/descriptor.proto") < found.index("confluent/meta.proto")


def test_a_serialized_descriptor_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    schema = Registered(3, PROTOBUF, FLIGHT, references=(("air/plane.proto", PLANE),))
    file = FileDescriptorSet.FromString(descriptor_set(schema)).file[-1]
    text = base64.b64encode(file.SerializeToString()).decode()
    monkeypatch.setattr(subprocess, "run", None)  # nothing is left to compile
    serialized = Registered(4, PROTOBUF, text, references=(("air/plane.proto", PLANE),))
    plane = FileDescriptorSet.FromString(descriptor_set(schema)).file
    plane = next(one for one in plane if one.name == "air/plane.proto")
    inner = Registered(5, PROTOBUF, base64.b64encode(plane.SerializeToString()).decode())
    serialized = Registered(4, PROTOBUF, text, references=(("air/plane.proto", inner),))

    assert files(serialized)[-1] == "schema-4.proto"
    with pytest.raises(SchemaError, match=r"^schema 6 imports air/plane.proto, which is none of"):
        descriptor_set(Registered(6, PROTOBUF, text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message", "^schema 7 is no Protobuf schema: 1:8: Expected message name"),
        ('syntax = "proto3"; import "no.proto"; message A {}', "imports no.proto, which is none"),
        ('syntax = "proto3"; message A { B b = 1; }', '"B" is not defined'),
    ],
)
def test_text_that_does_not_compile_is_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason) as refused:
        descriptor_set(Registered(7, PROTOBUF, text))
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("google.protobuf", "^Protobuf needs the package protobuf. Type: pip install"),
        ("grpc_tools.protoc", "^schema 8 is a .proto file's text, which grpcio-tools compiles"),
    ],
)
def test_a_missing_package_is_named(
    missing: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = protobuf_files._found
    monkeypatch.setattr(
        protobuf_files, "_found", lambda name: None if name == missing else found(name)
    )
    descriptor_set.cache_clear()
    with pytest.raises(SchemaError, match=reason):
        descriptor_set(Registered(8, PROTOBUF, PLANE.text))


def test_a_module_that_is_not_there_is_not_found() -> None:
    assert protobuf_files._found("google.nothing.inner") is None
    assert protobuf_files._found("nothing_at_all") is None
