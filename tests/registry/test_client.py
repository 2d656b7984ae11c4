"""Schemas with all that they refer to, from confluent-kafka's client."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.registry.client import MAX_REFERENCES, RegistryClient, RegistryError, open_registry
from ottla.registry.registered import AVRO

PLANE = SimpleNamespace(name="Plane", subject="plane", version=2)


class Fake:
    """Answers with one schema for each subject."""

    def __init__(self, **schemas: Any) -> None:
        self.schemas = schemas
        self.asked: list[tuple[str, int]] = []

    def get_version(self, subject: str, version: int, fmt: str) -> Any:
        self.asked.append((subject, version))
        return SimpleNamespace(schema_id=1, schema=self.schemas[subject])

    def get_schema(self, schema_id: int, fmt: str) -> Any:
        raise ConnectionRefusedError(111, "refused")


def schema(text: str, *references: Any) -> Any:
    return SimpleNamespace(schema_str=text, schema_type=None, references=references)


def test_references_are_asked_for_by_subject_and_version() -> None:
    fake = Fake(flights=schema("flight", PLANE), plane=schema("plane"))

    found = RegistryClient(fake).version("flights", 1)

    assert found is not None
    assert (found.text, found.format) == ("flight", AVRO)
    ((name, plane),) = found.references
    assert (name, plane.shown) == ("Plane", "version 2 of plane (schema 1)")
    assert fake.asked == [("flights", 1), ("plane", 2)]


def test_references_that_do_not_end_are_refused() -> None:
    fake = Fake(plane=schema("plane", PLANE))
    with pytest.raises(RegistryError, match=f"refers to more than {MAX_REFERENCES} others"):
        RegistryClient(fake).version("plane", 2)


def test_a_registry_that_does_not_answer_is_away() -> None:
    with pytest.raises(RegistryError, match="refused") as caught:
        RegistryClient(Fake()).schema(7)
    assert (caught.value.away, caught.value.status) == ("ConnectionRefusedError", None)


def test_a_setting_that_the_client_does_not_know() -> None:
    with pytest.raises(RegistryError, match=r"refuses the settings.*Unrecognized"):
        open_registry({"url": "http://localhost:1", "colour": "red"})
