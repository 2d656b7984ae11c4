"""JSON as keys and values with the newest schemas of a topic's subjects; `decoder` is the way back.

Bytes, fixed and decimals of Avro cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.registry.client import RegistryClient, first_line, is_away
from ottla.registry.decoder import KEY, READ, VALUE, subjects_by_topic
from ottla.registry.registered import AVRO, JSON, PROTOBUF

Serializer: TypeAlias = Callable[[Any, Any], bytes]


class EncodeError(Exception):
    """Data cannot be encoded. The words say what is wrong with it: `has a value that ...`."""


class NoSchemaError(Exception):
    """A topic has no schema for its values, or one that cannot be used: one line without a stop.

    `is_missing`: there is none.
    """

    def __init__(self, words: str, *, is_missing: bool = False) -> None:
        super().__init__(words)
        self.is_missing = is_missing


class Encoder:
    """Encodes with the subjects `TOPIC-key` and `TOPIC-value`.

    A topic without a schema for its keys gets them as they are.
    """

    def __init__(self, client: RegistryClient, topic: str) -> None:
        """Raises NoSchemaError and RegistryError."""
        self._topic = topic
        self._key = serializer(client, f"{topic}-key")
        self._value = serializer(client, f"{topic}-value")
        if self._value is None:
            words = f"the registry has no subject {topic}-value"
            raise NoSchemaError(words, is_missing=True)

    def key(self, data: bytes | None) -> bytes | None:
        """Raises EncodeError, as `value`."""
        return self._encoded(self._key, data, KEY)

    def value(self, data: bytes | None) -> bytes | None:
        """Raises EncodeError if the data is not JSON, not what the schema describes, or if the
        registry does not answer.
        """
        return self._encoded(self._value, data, VALUE)

    def _encoded(self, encode: Serializer | None, data: bytes | None, field: str) -> bytes | None:
        if data is None or encode is None:
            return data
        from confluent_kafka.serialization import SerializationContext

        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise EncodeError(f"has a {field} that is not JSON: {error}") from None
        try:
            return encode(found, SerializationContext(self._topic, field))
        except Exception as error:
            # Serializers raise whatever their writers raise for data that does not fit.
            reason = first_line(error)
            if is_away(error):
                raise EncodeError(f"cannot be encoded, the registry failed: {reason}") from None
            raise EncodeError(f"has a {field} that its schema refuses: {reason}") from error


def serializer(client: RegistryClient, subject: str) -> Serializer | None:
    """Writes with the subject's newest schema; None without such a subject. Raises NoSchemaError
    and RegistryError.
    """
    found = client.latest(subject)
    if found is None:
        return None
    if found.format == PROTOBUF:
        from ottla.registry.protobuf_json import ProtobufError, encoded, messages_of

        try:
            messages = messages_of(found)
        except ProtobufError as error:
            raise NoSchemaError(f"cannot write with {subject}: {error}") from error
        return lambda value, _: encoded(messages, value)
    settings = {
        **subjects_by_topic(),
        "auto.register.schemas": False,
        "use.latest.version": True,
    }
    schema = client.for_serializer(found)
    if found.format == AVRO:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return AvroSerializer(client.client, schema, conf=settings)  # type: ignore[no-any-return]
    if found.format == JSON:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        return JSONSerializer(schema, client.client, conf=settings)  # type: ignore[no-any-return]
    raise NoSchemaError(f"the subject {subject} is of type {found.format}; {READ} can be written")
