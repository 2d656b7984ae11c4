"""Regular expressions of clients, with Google's RE2.

Kafka compiles them with RE2/J: the same syntax, and a match takes time linear in the text. Python's
`re` backtracks: a client's pattern such as `(a+)+b` would stop the broker.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from ottla.protocol.errors import ApiError, ErrorCode

MAX_MEMORY_BYTES: Final = 1 << 20
"""Of one compiled pattern. A larger one is refused; RE2/J has no limit."""


class Expression(Protocol):
    def fullmatch(self, text: str) -> Any:
        """None unless the whole text matches."""


def compile_expression(pattern: str) -> Expression:
    """Raises ApiError INVALID_REGULAR_EXPRESSION, with the reason."""
    # Imported late: it is loaded with the first pattern, not with the broker.
    import re2

    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    try:
        compiled: Expression = re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        raise ApiError(
            ErrorCode.invalid_regular_expression,
            f"{pattern!r} is not a valid regular expression: {_text(reason)}",
        ) from None
    return compiled


def _text(reason: object) -> str:
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
