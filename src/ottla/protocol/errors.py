"""Kafka's error codes, and the one exception that carries one.

DecodeError (ValueError) bytes from the peer that are no message: the connection ends
ApiError (Exception)     a request understood and refused: its code goes into the response
"""

from kio.schema.errors import ErrorCode

__all__ = ("ApiError", "DecodeError", "ErrorCode")


class ApiError(Exception):
    """A refusal that the client is told of: `code` and, where there is room, `message`."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


class DecodeError(ValueError):
    """The peer's bytes do not form a message; says what was found and what was expected."""
