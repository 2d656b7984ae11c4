"""Why a cluster for development cannot start, or does not do what it is asked."""

from __future__ import annotations


class DevClusterError(Exception):
    """The text is one sentence. `hint` is what to do instead, if that is known."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class OptionError(DevClusterError):
    """An option of `ottla cluster start` is not valid; nothing was tried."""
