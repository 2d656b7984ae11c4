"""How many elements and tagged fields one message may hold, counted over the whole message.

A byte of a request may be an element of an array or a tagged field. Each costs far more time and
memory than its byte, so a limit on the bytes is no limit on either. Apache Kafka 4.4 refuses more
than 1,000,000 elements in one array and 10,000 tagged fields in one struct (MessageDataGenerator);
here a message has no more in all.

The event loop takes much less at once: a message beyond `LOOP` is decoded or encoded in a thread.

The budget of a message that is decoded is a context variable, so that each thread has its own. It
is not passed on: most messages have no array of two elements, and pay nothing but its start. An
array of one element is not counted: it adds at most one element for each level of nesting to an
element that was counted.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, NamedTuple


class Budget(NamedTuple):
    """What may be spent on one message."""

    elements: int
    """Of arrays of two and more elements."""
    tags: int
    """Tagged fields, known and unknown ones (KIP-482)."""


MESSAGE: Final = Budget(1_000_000, 10_000)
"""More is refused."""
RESPONSE: Final = Budget(20_000_000, 20_000_000)
"""Of a broker that was asked: the metadata of 100,000 partitions has a million elements."""
LOOP: Final = Budget(5_000, 1_000)
"""At up to 5 us an element, about 25 ms."""
HEADER: Final = Budget(0, 100)
"""A request header has no array, and no version of it has a tagged field yet."""


BEYOND_LIMITS: Final = (
    f"more than {MESSAGE.elements:,} elements in arrays, "
    f"or more than {MESSAGE.tags:,} tagged fields"
)
"""Why a message is refused."""


class LongMessageError(Exception):
    """The message holds more than its budget."""


left: Final = ContextVar("left", default=MESSAGE)
"""A caller that decodes a message sets it first; what is left of it is kept there."""


def spend_elements(count: int) -> None:
    """Raises LongMessageError."""
    elements, tags = left.get()
    if elements < count:
        raise LongMessageError
    left.set(Budget(elements - count, tags))


def spend_tags(count: int) -> None:
    """Raises LongMessageError."""
    elements, tags = left.get()
    if tags < count:
        raise LongMessageError
    left.set(Budget(elements, tags - count))
