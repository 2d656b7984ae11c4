"""Ottla's own requests: JSON in Kafka's framing, with request header v1. A broker that is not
Ottla, or is too old for one, closes the connection.

Each document has the request's name with its version, and in place of an answer there may be
{"error": {"code", "message"}}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ottla.client.addresses import Address
from ottla.client.client import Client
from ottla.client.errors import ClientError, ClosedError, Needs, NotKafkaError, RefusedError
from ottla.protocol.errors import ErrorCode

Document = dict[str, Any]

NOTHING: Final[Mapping[str, Any]] = {}
VERSION: Final = 1
NOT_AUTHORIZED: Final = "not_authorized"


class NotOttlaError(ClientError):
    """The server is a Kafka broker that is not Ottla, or no broker at all."""


def ask_own(
    client: Client,
    address: Address,
    key: int,
    name: str,
    lacks: str,
    question: Mapping[str, Any] = NOTHING,
) -> Document:
    """The document of the broker at this address, which may be an error. `lacks`: what a broker
    that closes the connection does not do, such as "lists no segments". Raises ClientError:
    NotOttlaError where the broker is not Ottla's.
    """
    body = json.dumps({name: VERSION, **question}).encode()
    try:
        answer = client.ask_at_bytes(address, key, body)
    except ClosedError:
        raise NotOttlaError(
            f"the broker at {address} {lacks}: it is not an Ottla broker, or an older one."
        ) from None
    except NotKafkaError:
        raise NotOttlaError(f"the server at {address} is not an Ottla broker.") from None
    return read_own(answer, name, str(address))


def read_own(answer: bytes, name: str, where: str) -> Document:
    """Raises NotOttlaError if it is no answer to the request of this name."""
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or name not in document:
        raise NotOttlaError(f"the server at {where} is not an Ottla broker.")
    return document


def check_own(answer: Mapping[str, Any], doing: str, code: ErrorCode, needs: Needs) -> None:
    """Raises ClientError if the answer is an error: a RefusedError with this code if a permission
    is missing, which is what the request `needs`.
    """
    if "error" not in answer:
        return
    message = answer["error"]["message"]
    if answer["error"]["code"] == NOT_AUTHORIZED:
        raise RefusedError(doing, code, message, needs)
    raise ClientError(f"cannot {doing}: {message}.")
