"""`--registry URL`: keys and values as JSON, where topics have them in a registry's schemas.

`consume` shows what `registry.decoder` makes of them, and `produce` reads such lines.
"""

from __future__ import annotations

from typing import Any, Final

import click

from ottla.cli.failures import Failed, UsageFailed
from ottla.messaging.jsonlines import LineError
from ottla.registry import decoder, encoder
from ottla.registry.client import (
    TIMEOUT_S,
    AddressError,
    RegistryClient,
    RegistryError,
    registry_at,
)

CHECK: Final = "Check --registry, or leave it out to see the bytes."
REGISTER: Final = "Register the schema of the topic's values first, or leave out --registry."
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
    """Encodes JSON with the newest schemas of a topic."""

    def __init__(self, client: RegistryClient, topic: str) -> None:
        """Raises Failed if the topic has no schema for its values, or one that cannot be used."""
        try:
            self._encoder = encoder.Encoder(client, topic)
        except encoder.NoSchemaError as error:
            raise Failed(f"{error}.", REGISTER if error.is_missing else None) from error
        except RegistryError as error:
            raise Failed(f"cannot read the schemas of {topic}: {error}.", CHECK) from None

    def encoded(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Raises LineError: the records before it are still accounted for."""
        try:
            return self._encoder.key(key), self._encoder.value(value)
        except encoder.EncodeError as error:
            raise LineError(str(error)) from error
