"""Changes of a registry: new versions, deletions, levels of compatibility. See `client`.

A deletion is a soft one: the version is listed no more, and records that name its schema can still
be read. https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from ottla.registry.client import RegistryClient

LEVELS: Final = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
FORMATS: Final = ("AVRO", "PROTOBUF", "JSON")
_T = TypeVar("_T")


class Reference(NamedTuple):
    """Another schema that a schema uses under a name."""

    name: str
    subject: str
    version: int


class NewSchema(NamedTuple):
    """What is to be the next version of a subject."""

    format: str
    text: str
    references: tuple[Reference, ...] = ()


class RegistryChanges:
    """Every method raises RegistryError, also where a registry refuses."""

    def __init__(self, registry: RegistryClient) -> None:
        self._ask: Callable[[Callable[[], Any]], Any] = registry.ask
        self._client = registry.client

    def references_of(self, subject: str, version: int) -> list[Reference]:
        """What a version uses; none where there is no such version."""
        found = self._ask(lambda: self._client.get_version(subject, version))
        named = (found.schema.references or ()) if found is not None else ()
        return [Reference(each.name, each.subject, each.version) for each in named]

    def is_allowed(self, subject: str, new: NewSchema) -> bool:
        """Whether the subject's level allows the version. A new subject allows any."""
        schema = _schema(new)
        allowed = self._ask(lambda: self._client.test_compatibility_all_versions(subject, schema))
        return allowed is None or bool(allowed)

    def register(self, subject: str, new: NewSchema) -> int:
        """Returns the schema's id; that of a version that is the same, if the subject has one."""
        schema = _schema(new)
        return int(self._ask(lambda: self._client.register_schema(subject, schema)))

    def delete_version(self, subject: str, version: int) -> bool:
        """Whether there was one."""
        return self._ask(lambda: self._client.delete_version(subject, version)) is not None

    def delete_subject(self, subject: str) -> Sequence[int]:
        """Returns the versions that were deleted; none where there is no such subject."""
        return list(self._ask(lambda: self._client.delete_subject(subject)) or ())

    def set_level(self, subject: str, level: str) -> None:
        """`level`: one of LEVELS, from now on for new versions of the subject."""
        self._ask(lambda: self._client.set_compatibility(subject, level))


def _schema(new: NewSchema) -> Any:
    from confluent_kafka.schema_registry import Schema, SchemaReference

    references = [SchemaReference(*each) for each in new.references]
    return Schema(new.text, new.format, references)
