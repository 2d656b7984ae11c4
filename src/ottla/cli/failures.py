"""Failures of commands as messages: never a traceback for someone else's fault.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a pipeline whose first batch is mostly rejected,
130 Ctrl-C, 141 the reader of the output has closed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.cli.wrapping import print_failure, printable
from ottla.client.errors import (
    AddressError,
    AdvertisedError,
    ClientError,
    NoAnswerError,
    SecurityError,
    SettingsError,
    UnreachableError,
    setting_hint,
)
from ottla.wording import errors
from ottla.wording.errors import ReportedError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_REJECTED: Final = 3
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141


class Failed(ReportedError):  # noqa: N818 - the ending of a command, not a bug
    """The command could not do what was asked. `hint` says what to type instead."""

    exit_code = EXIT_FAILED

    def print(self, command: str) -> None:
        """Write the message, and the hint on its own line, to standard error."""
        print_failure(command, self.message, self.hint)


class UsageFailed(Failed):
    """The command line is not valid; nothing was tried."""

    exit_code = EXIT_USAGE


class ClusterOptions(NamedTuple):
    """The options that name a cluster, and librdkafka's settings for it."""

    cluster: str = "--bootstrap"
    settings: str = "--client-config"


OPTIONS: Final = ClusterOptions()
HINTS: Final[dict[type[ClientError], str]] = {
    SecurityError: "Check the security settings ({0.settings}).",
    AdvertisedError: (
        "Correct its advertised.listeners, for example: ottla serve --advertise HOST:PORT"
    ),
    UnreachableError: (
        "Start one with `ottla serve`, or give another address with {0.cluster} HOST:PORT."
    ),
    NoAnswerError: "To see the cluster's state: ottla cluster describe",
}


def as_failed(error: ReportedError, options: ClusterOptions = OPTIONS) -> Failed:
    """Any such error as the failure of a command; the client's with the options to change."""
    if isinstance(error, Failed):
        return error
    if isinstance(error, AddressError):
        message = error.message.removeprefix("bootstrap")
        return UsageFailed(
            f"{options.cluster}{message}", f"For example: {options.cluster} {error.example}"
        )
    if isinstance(error, SettingsError):
        return UsageFailed(f"{options.settings}: {error.message}", error.hint)
    hint = error.hint
    if isinstance(error, SecurityError) and error.to_set is not None:
        hint = setting_hint(error.to_set, options.settings)
    hints = (text.format(options) for kind, text in HINTS.items() if isinstance(error, kind))
    failed = UsageFailed if error.is_usage else Failed
    return failed(printable(error.message), hint or next(hints, None))


def unknown(kind: str, word: str, known: Iterable[str], hint: str) -> Failed:
    """The failure for a name that does not exist, with the most similar name that does."""
    return errors.unknown(Failed, kind, word, known, hint)
