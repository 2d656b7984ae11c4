"""Protobuf data of several schemas and messages as columns."""

from typing import Any

import pytest
from components.registry_server import run_registry
from tests.pipelines.source.test_framed_columns import rows

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.marks import CONFLICT, UNKNOWN_ID
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.source.registry_schema import framed_schema
from ottla.registry.framing import head

pytestmark = pytest.mark.spark

START = 'syntax = "proto3"; package air; '
OLD = START + "message Flight { int32 id = 1; repeated string tails = 2; }"
NEW = START + (
    "message Plane { string tail = 1; } message Flight { int64 id = 1; repeated string tails = 2;"
    "optional string dest = 3; Plane plane = 4; } message Note { string text = 1; }"
)
OTHER = START + "message Flight { string id = 1; }"


def test_several_ids_and_messages_are_read_as_one(spark: Any) -> None:
    with run_registry() as registry:
        old = registry.register("f-value", OLD, "PROTOBUF")
        other = registry.register("f-value", OTHER, "PROTOBUF")
        new = registry.register("f-value", NEW, "PROTOBUF")
        settings = RegistrySettings(registry.url)
        framed = framed_schema(spark, settings, "f", "value", "registry#air.Flight")
        with pytest.raises(
            PipelineError, match=r"has the messages air.Flight, air.Note: name the "
        ):
            framed_schema(spark, settings, "f", "value", "registry")
        with pytest.raises(PipelineError, match=r"has no message B: it has air.Plane, air.Flight"):
            framed_schema(spark, settings, "f", "value", "registry#B")
    parsed = rows(
        spark,
        framed,
        [
            head(old) + b"\0\x08\x05\x12\x01x",
            head(new) + b"\x02\x02\x08\x06\x1a\x03HNL\x22\x04\x0a\x02N1",
            None,
            head(new) + b"\0\x0a\x01x",
            head(new) + b"\x02\x02\xff",
            b"plain",
        ],
    )

    assert parsed == [
        ({"id": 5, "tails": ["x"], "dest": None, "plane": None}, None),
        ({"id": 6, "tails": [], "dest": "HNL", "plane": {"tail": "N1"}}, None),
        (None, None),
        (None, "value is air.Plane, not air.Flight, by which the column is read"),
        (None, "value is not Protobuf data of air.Flight: it is damaged"),
        (
            None,
            "value has no schema id: it does not begin with the byte 0 and the 4 bytes of an id",
        ),
    ]
    for schema_id, words in ((9_999, UNKNOWN_ID), (other, rf"{CONFLICT}: value: .*value\.id. has")):
        with pytest.raises(Exception, match=words):
            rows(spark, framed, [head(schema_id) + b"\0"])
