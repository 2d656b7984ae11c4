"""Keys and values as JSON, where a topic has them in a registry's schemas.

What confluent-kafka's deserializers return is one line of JSON. Bytes and fixed of Avro are text in
ISO 8859-1, as in Avro's own JSON encoding; decimals, dates and times are text. Protobuf
(`protobuf_json`) is Protobuf's own JSON. Data without the registry's head (`framing`) is left as
it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.registry.avro_items import has_empty_items
from ottla.registry.client import RegistryClient, RegistryError, first_line
from ottla.registry.framing import id_of
from ottla.registry.registered import AVRO, JSON, PROTOBUF, Registered

if TYPE_CHECKING:
    from ottla.registry.protobuf_messages import Messages

READ: Final = "AVRO, JSON and PROTOBUF"
VALUE: Final = "value"
KEY: Final = "key"


class DecodeError(Exception):
    """Data cannot be decoded: one line without a stop, that begins with "cannot decode"."""


class Decoder:
    """Decodes what a registry's schemas describe. Use from any thread."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._by_type: dict[str, Callable[[bytes, Any], Any]] = {}
        self._schemas: dict[int, Registered] = {}
        self._messages: dict[int, Messages] = {}

    def decoded(self, message: Any) -> DecodedRecord:
        """The record with key and value as JSON. Raises DecodeError for data that its schema does
        not describe, and if the registry does not answer.
        """
        where = f"{message.topic()}-{message.partition()}@{message.offset()}"
        return DecodedRecord(
            message,
            self.read(message.key(), message.topic(), KEY, where),
            self.read(message.value(), message.topic(), VALUE, where),
        )

    def read(self, data: bytes | None, topic: str, field: str, where: str) -> bytes | None:
        """The data as a line of JSON, or as it is if it is not framed. `field`: KEY or VALUE.
        Raises DecodeError.
        """
        schema_id = None if data is None else id_of(data)
        if data is None or schema_id is None:
            return data
        from confluent_kafka.serialization import SerializationContext

        what = f"the {field} of {where} with schema {schema_id}"
        kind = self.schema(schema_id, what).format
        if kind == PROTOBUF:
            return as_json(self._protobuf(schema_id, data, what))
        decode = self._by_type.get(kind) or self._decoder(kind, what)
        self._by_type[kind] = decode
        try:
            found = decode(data, SerializationContext(topic, field))
        except Exception as error:
            # Deserializers raise whatever their parsers raise for data that they cannot read.
            raise DecodeError(f"cannot decode {what}: {first_line(error)}") from error
        return as_json(found)

    def schema(self, schema_id: int, what: str) -> Registered:
        """The schema of an id. Raises DecodeError."""
        if schema_id not in self._schemas:
            try:
                found = self._client.schema(schema_id)
            except RegistryError as error:
                raise DecodeError(f"cannot decode {what}: {error}") from error
            if found is None:
                raise DecodeError(f"cannot decode {what}: Schema not found")
            if found.format == AVRO and has_empty_items(found):
                raise DecodeError(
                    f"cannot decode {what}: it has an array whose items take no bytes, so that a "
                    "short record may have any number of them"
                )
            self._schemas[schema_id] = found
        return self._schemas[schema_id]

    def _protobuf(self, schema_id: int, data: bytes, what: str) -> Any:
        # Imported when it is met: it takes a while.
        from ottla.registry.protobuf_json import ProtobufError, decoded, messages_of

        try:
            if schema_id not in self._messages:
                self._messages[schema_id] = messages_of(self._schemas[schema_id])
            return decoded(self._messages[schema_id], data)
        except ProtobufError as error:
            raise DecodeError(f"cannot decode {what}: {error}") from error

    def _decoder(self, kind: str, what: str) -> Callable[[bytes, Any], Any]:
        if kind == AVRO:
            from confluent_kafka.schema_registry.avro import AvroDeserializer

            return AvroDeserializer(  # type: ignore[no-any-return]
                self._client.client, conf=subjects_by_topic()
            )
        if kind == JSON:
            from confluent_kafka.schema_registry.json_schema import JSONDeserializer

            return JSONDeserializer(  # type: ignore[no-any-return]
                None, schema_registry_client=self._client.client, conf=subjects_by_topic()
            )
        raise DecodeError(f"cannot decode {what}: it is of type {kind}; {READ} can be")


class DecodedRecord:
    """A record of librdkafka's with another key and value."""

    def __init__(self, message: Any, key: bytes | None, value: bytes | None) -> None:
        self._message, self._key, self._value = message, key, value

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)


def subjects_by_topic() -> dict[str, Any]:
    """`TOPIC-key` and `TOPIC-value`. The default would first ask the registry for others, which
    only Confluent's newest knows.
    """
    from confluent_kafka.schema_registry import topic_subject_name_strategy

    return {"subject.name.strategy": topic_subject_name_strategy}


def as_json(value: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=plain).encode("utf-8", "surrogatepass")


def may_be_decoded(text: str) -> bool:
    """Whether data can have been decoded to this text: it is JSON, written as `as_json` does."""
    try:
        return as_json(json.loads(text)) == text.encode()
    except ValueError:
        return False
    except RecursionError:
        return True  # nested deeper than Python reads it: not known


def plain(value: Any) -> Any:
    """What JSON has no type for."""
    if isinstance(value, bytes):
        return value.decode("iso-8859-1")
    return str(value)
