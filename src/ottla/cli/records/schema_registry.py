"""`--registry URL`: keys and values as JSON, where topics have them in a registry's schemas.

`consume` shows what confluent-kafka's deserializers return as one line of JSON, and `produce` reads
such lines. Bytes and fixed of Avro are shown as text in ISO 8859-1, as in Avro's own JSON encoding,
and decimals, dates and times as text; bytes, fixed and decimals cannot be written. Data without the
registry's header (a zero byte and the schema's id) is left as it is.

Protobuf (`registry.protobuf_json`) is Protobuf's own JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import click

from ottla.cli.failures import Failed, UsageFailed
from ottla.messaging.jsonlines import LineError
from ottla.registry.client import RegistryClient, RegistryError, first_line, is_away, open_registry
from ottla.registry.registered import AVRO, JSON, PROTOBUF, Registered

if TYPE_CHECKING:
    from ottla.registry.protobuf_messages import Messages

READ: Final = "AVRO, JSON and PROTOBUF"
HEADER_BYTES: Final = 5
"""A zero byte and the schema's id."""
TIMEOUT_S: Final = 10
CHECK: Final = "Check --registry, or leave it out to see the bytes."
T = TypeVar("T")
VALUE: Final = "value"
KEY: Final = "key"

REGISTRY: Final = click.option(
    "--registry",
    metavar="URL",
    help="Keys and values have schemas of this registry (Avro, JSON Schema, Protobuf).",
)


def client_of(url: str) -> RegistryClient:
    """The client of a registry; `http://user:password@host` authenticates. Raises UsageFailed."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageFailed(
            "--registry must be http://HOST:PORT or https://HOST:PORT.",
            "For example: --registry http://localhost:8081",
        )
    address = parts.netloc.rpartition("@")[2]
    settings: dict[str, Any] = {
        "url": urlunsplit((parts.scheme, address, parts.path, "", "")),
        "timeout": TIMEOUT_S,
        "max.retries": 1,
    }
    if parts.username is not None:
        settings["basic.auth.user.info"] = (
            f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        )
    try:
        return open_registry(settings)
    except RegistryError as error:
        raise Failed(str(error)) from None


class Decoder:
    """Decodes what a registry's schemas describe."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._by_type: dict[str, Callable[[bytes, Any], Any]] = {}
        self._schemas: dict[int, Registered] = {}
        self._messages: dict[int, Messages] = {}

    def decoded(self, message: Any) -> DecodedRecord:
        """The record with key and value as JSON. Raises Failed for data that its schema does not
        describe, and if the registry does not answer.
        """
        return DecodedRecord(
            message,
            self._json(message, message.key(), KEY),
            self._json(message, message.value(), VALUE),
        )

    def _json(self, message: Any, data: bytes | None, field: str) -> bytes | None:
        if data is None or len(data) < HEADER_BYTES or data[0] != 0:
            return data
        from confluent_kafka.serialization import SerializationContext

        what = f"the {field} of {message.topic()}-{message.partition()}@{message.offset()}"
        schema_id = int.from_bytes(data[1:HEADER_BYTES])
        with_schema = f"{what} with schema {schema_id}"
        kind = self._type(schema_id, with_schema)
        if kind == PROTOBUF:
            return as_json(self._protobuf(schema_id, data, with_schema))
        decode = self._by_type.get(kind) or self._decoder(kind, with_schema)
        self._by_type[kind] = decode
        try:
            found = decode(data, SerializationContext(message.topic(), field))
        except Exception as error:
            # Deserializers raise whatever their parsers raise for data that they cannot read.
            raise Failed(f"cannot decode {with_schema}: {first_line(error)}.", CHECK) from error
        return as_json(found)

    def _type(self, schema_id: int, what: str) -> str:
        if schema_id not in self._schemas:
            found = asked(lambda: self._client.schema(schema_id), f"decode {what}")
            if found is None:
                raise Failed(f"cannot decode {what}: Schema not found.", CHECK)
            self._schemas[schema_id] = found
        return self._schemas[schema_id].format

    def _protobuf(self, schema_id: int, data: bytes, what: str) -> Any:
        # Imported when it is met: it takes a while.
        from ottla.registry.protobuf_json import ProtobufError, decoded, messages_of

        try:
            if schema_id not in self._messages:
                self._messages[schema_id] = messages_of(self._schemas[schema_id])
            return decoded(self._messages[schema_id], data)
        except ProtobufError as error:
            raise Failed(f"cannot decode {what}: {error}.", CHECK) from error

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
        raise Failed(f"cannot decode {what}: it is of type {kind}; {READ} can be.", CHECK)


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


class Encoder:
    """Encodes JSON with the newest schemas of a topic's subjects, `TOPIC-key` and `TOPIC-value`.

    A topic without a schema for its keys gets them as they are.
    """

    def __init__(self, client: RegistryClient, topic: str) -> None:
        """Raises Failed if the topic has no schema for its values, or one that cannot be used."""
        self._topic = topic
        self._key = serializer(client, f"{topic}-key")
        self._value = serializer(client, f"{topic}-value")
        if self._value is None:
            raise Failed(
                f"the registry has no subject {topic}-value.",
                "Register the schema of the topic's values first, or leave out --registry.",
            )

    def key(self, data: bytes | None) -> bytes | None:
        return self._encoded(self._key, data, KEY)

    def value(self, data: bytes | None) -> bytes | None:
        return self._encoded(self._value, data, VALUE)

    def _encoded(self, encode: Any, data: bytes | None, field: str) -> bytes | None:
        """Raises LineError if the data is not JSON, not what the schema describes, or if the
        registry does not answer: the records before it are still accounted for.
        """
        if data is None or encode is None:
            return data
        from confluent_kafka.serialization import SerializationContext

        try:
            found = json.loads(data)
        except ValueError as error:
            raise LineError(f"has a {field} that is not JSON: {error}") from None
        try:
            encoded: bytes = encode(found, SerializationContext(self._topic, field))
        except Exception as error:
            # Serializers raise whatever their writers raise for data that does not fit.
            if is_away(error):
                reason = first_line(error)
                raise LineError(f"cannot be encoded, the registry failed: {reason}") from None
            reason = first_line(error)
            raise LineError(f"has a {field} that its schema refuses: {reason}") from error
        return encoded


def serializer(client: RegistryClient, subject: str) -> Any | None:
    """Writes with the subject's newest schema; None without such a subject. Raises Failed."""
    found = asked(lambda: client.latest(subject), f"read {subject}")
    if found is None:
        return None
    settings = {
        **subjects_by_topic(),
        "auto.register.schemas": False,
        "use.latest.version": True,
    }
    if found.format == PROTOBUF:
        from ottla.registry.protobuf_json import ProtobufError, encoded, messages_of

        try:
            messages = messages_of(found)
        except ProtobufError as error:
            raise Failed(f"cannot write with {subject}: {error}.") from error
        return lambda value, _: encoded(messages, value)
    schema = asked(lambda: client.for_serializer(found), f"read {subject}")
    if found.format == AVRO:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return AvroSerializer(client.client, schema, conf=settings)
    if found.format == JSON:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        return JSONSerializer(schema, client.client, conf=settings)
    raise Failed(f"the subject {subject} is of type {found.format}; {READ} can be written.")


def asked(ask: Callable[[], T], doing: str) -> T:
    """What the registry answers. Raises Failed."""
    try:
        return ask()
    except RegistryError as error:
        raise Failed(f"cannot {doing}: {error}.", CHECK) from None


def subjects_by_topic() -> dict[str, Any]:
    """`TOPIC-key` and `TOPIC-value`. The default would first ask the registry for others, which
    only Confluent's newest knows.
    """
    from confluent_kafka.schema_registry import topic_subject_name_strategy

    return {"subject.name.strategy": topic_subject_name_strategy}


def as_json(value: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=plain).encode("utf-8", "surrogatepass")


def plain(value: Any) -> Any:
    """What JSON has no type for."""
    if isinstance(value, bytes):
        return value.decode("iso-8859-1")
    return str(value)
