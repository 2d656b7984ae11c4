"""`--registry URL`: keys and values as JSON, where topics have them in a registry's schemas.

`consume` shows what `registry.decoder` makes of them, and `produce` reads such lines; bytes, fixed
and decimals of Avro cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ottla.cli.failures import Failed, UsageFailed
from ottla.messaging.jsonlines import LineError
from ottla.registry import decoder
from ottla.registry.client import (
    TIMEOUT_S,
    AddressError,
    RegistryClient,
    RegistryError,
    first_line,
    is_away,
    registry_at,
)
from ottla.registry.decoder import KEY, READ, VALUE, subjects_by_topic
from ottla.registry.registered import AVRO, JSON, PROTOBUF

CHECK: Final = "Check --registry, or leave it out to see the bytes."
T = TypeVar("T")

REGISTRY: Final = click.option(
    "--registry",
    metavar="URL",
    help="Keys and values have schemas of this registry (Avro, JSON Schema, Protobuf).",
)


def client_of(url: str, timeout_s: float = TIMEOUT_S) -> RegistryClient:
    """The client of a registry; `http://user:password@host` authenticates. Raises UsageFailed, and
    Failed.
    """
    try:
        return registry_at(url, timeout_s)
    except AddressError as error:
        raise UsageFailed(
            f"--registry must be {error}.", "For example: --registry http://localhost:8081"
        ) from None
    except RegistryError as error:
        raise Failed(str(error)) from None


class Decoder:
    """Decodes what a registry's schemas describe."""

    def __init__(self, client: RegistryClient) -> None:
        self._decoder = decoder.Decoder(client)

    def decoded(self, message: Any) -> decoder.DecodedRecord:
        """The record with key and value as JSON. Raises Failed for data that its schema does not
        describe, and if the registry does not answer.
        """
        try:
            return self._decoder.decoded(message)
        except decoder.DecodeError as error:
            raise Failed(f"{error}.", CHECK) from error


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
