"""Ids in Kafka's text form: a UUID in URL-safe base64 without padding, 22 characters."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Protocol
from uuid import UUID


class RandomBits(Protocol):
    """The part of `random.Random` that is needed."""

    def getrandbits(self, k: int, /) -> int:
        """Return a number of `k` random bits."""


def random_uuid(random: RandomBits) -> UUID:
    """A version 4 UUID. As in Kafka's Uuid.randomUuid its text never starts with a dash, which
    command lines would parse as an option.
    """
    while True:
        found = UUID(int=random.getrandbits(128), version=4)
        if not uuid_text(found).startswith("-"):
            return found


def uuid_text(value: UUID) -> str:
    """The id in Kafka's text form."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """The inverse of `uuid_text`; raises ValueError."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))
