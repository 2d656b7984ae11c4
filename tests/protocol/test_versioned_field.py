from importlib import import_module

import pytest

from ottla.api.table import ADVERTISED, find
from ottla.protocol.messages import message_module
from ottla.protocol.versioned_field import DECLARED, VersionedField
from ottla.protocol.versions import APIS

for key, *_ in ADVERTISED:
    find(key)  # imports its handler


@pytest.mark.parametrize("field", DECLARED, ids=[f"{each.struct}.{each.name}" for each in DECLARED])
def test_every_declared_field_is_in_some_versions_only(
    field: VersionedField[object],
) -> None:
    handler = find(field.key)
    assert handler is not None
    has = []
    for version in range(handler.min_version, handler.max_version + 1):
        struct = getattr(message_module(field.key, version, "request"), field.struct, None)
        if struct is not None:
            has.append(field.name in struct.__slots__)
    assert any(has), f"no version of {field.struct} has {field.name}"
    assert not all(has), f"every version of {field.struct} has {field.name}: take it as it is"


def test_a_missing_field_has_its_default() -> None:
    module = import_module(f"kio.schema.{APIS[12].name}.v0.request")
    newer = import_module(f"kio.schema.{APIS[12].name}.v4.request")
    member = VersionedField(12, "HeartbeatRequest", "group_instance_id", "default")
    DECLARED.remove(member)
    fields = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    assert member(module.HeartbeatRequest(**fields)) == "default"
    assert member(newer.HeartbeatRequest(**fields, group_instance_id="i")) == "i"
