"""The headers of a consumed record. Names are UTF-8 by Kafka's protocol, but no broker checks that,
and the binding of librdkafka cannot return others: it raises SystemError.
"""

from __future__ import annotations

from operator import methodcaller
from typing import Any, Final

from ottla.wording.errors import ReportedError

_HEADERS: Final = methodcaller("headers")
"""Python checks a call that it makes from C for an exception that was left behind. In a loop that
is hot it does not (PEP 659), and the exception would appear anywhere.
"""

Headers = list[tuple[str, bytes | None]]


_UNREADABLE: Final[Headers] = []
"""Marks a record whose headers were asked for."""


class HeadersError(ReportedError):
    """A record has a header whose name is not UTF-8."""


def known_headers(record: Any) -> Headers | None:
    """None if a name is not UTF-8."""
    try:
        found: Headers | None = _HEADERS(record)
    except (SystemError, UnicodeDecodeError):
        # The binding keeps tuples without a name, which nobody must touch.
        record.set_headers(_UNREADABLE)
        return None
    return None if found is _UNREADABLE else found or []


def headers_of(record: Any) -> Headers:
    """Raises HeadersError."""
    found = known_headers(record)
    if found is None:
        where = f"{record.topic()}-{record.partition()} at offset {record.offset()}"
        raise HeadersError(
            f"the record of {where} has a header whose name is not UTF-8.",
            "librdkafka's binding cannot read its headers. Begin after it.",
        )
    return found
