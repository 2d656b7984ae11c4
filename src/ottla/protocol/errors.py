"""Kafka's error codes, and the exception that carries one.

DecodeError (ValueError) bytes from the peer that are not a message: the connection is closed
ApiError (Exception)     a valid request that is refused: its code goes into the response
"""

from ottla.protocol.newer.error_code import ErrorCode

__all__ = ("ApiError", "DecodeError", "ErrorCode")


class ApiError(Exception):
    """An error for the client: `code` and, if the response has a field for it, `message`."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


class DecodeError(ValueError):
    """The peer's bytes are not a message; the message names what was found and expected."""
