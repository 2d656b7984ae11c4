"""Ids as Kafka writes them: a UUID in URL-safe base64 without padding, 22 characters."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Protocol
from uuid import UUID


class RandomBits(Protocol):
    """What is needed of `random.Random`."""

    def getrandbits(self, k: int, /) -> int:
        """Return a number of `k` random bits."""


def random_uuid(random: RandomBits) -> UUID:
    """A version 4 UUID. As in Kafka's Uuid.randomUuid its text never begins with a dash, which
    command lines would take for an option.
    """
    while True:
        found = UUID(int=random.getrandbits(128), version=4)
        if not uuid_text(found).startswith("-"):
            return found


def uuid_text(value: UUID) -> str:
    """The id as Kafka writes it."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """The opposite of `uuid_text`; raises ValueError."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))
