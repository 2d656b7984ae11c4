"""Fields that the schema to read by lacks."""

import json
from typing import Any

from ottla.pipelines.registry.left_out import left_out
from ottla.registry.registered import Registered


def avro(schema_id: int, *fields: Any) -> Registered:
    named = [{"name": one, "type": "int"} if isinstance(one, str) else one for one in fields]
    return Registered(
        schema_id, "AVRO", json.dumps({"type": "record", "name": "F", "fields": named})
    )


def of_json(schema_id: int, *names: str) -> Registered:
    properties = {name: {"type": "integer"} for name in names}
    text = json.dumps({"type": "object", "properties": properties})
    return Registered(schema_id, "JSON", text)


def test_a_field_that_was_removed_is_named_with_a_schema_that_has_it() -> None:
    old, older = avro(2, "id", "delay"), avro(1, "id", "gate", "delay")
    assert left_out(avro(3, "id", "dest"), [old, older]) == {"delay": old, "gate": older}
    assert left_out(avro(3, "id", "delay", "gate"), [old, older]) == {}
    assert left_out(of_json(3, "id"), [of_json(1, "id", "gate"), old]) == {
        "gate": of_json(1, "id", "gate")
    }


def test_a_field_that_was_renamed_is_read_by_its_alias() -> None:
    renamed = {"name": "late", "type": "int", "aliases": ["delay"]}
    assert left_out(avro(2, "id", renamed), [avro(1, "id", "delay")]) == {}
    assert list(left_out(avro(1, "id", "delay"), [avro(2, "id", renamed)])) == ["late"]


def test_what_has_no_fields_leaves_out_nothing() -> None:
    for text in ("string", '"string"', '["null", "int"]'):
        plain = Registered(1, "AVRO", text)
        assert left_out(plain, [avro(2, "id")]) == {}
        assert left_out(avro(2, "id"), [plain]) == {}
    assert left_out(of_json(2, "id"), [Registered(1, "JSON", "no JSON")]) == {}
    assert left_out(Registered(2, "PROTOBUF", ""), [Registered(1, "PROTOBUF", "")]) == {}
