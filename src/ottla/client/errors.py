"""Why a request has no result. The text of each is one sentence.

ClientError            see ReportedError
  SettingsError        the settings cannot be used; nothing was tried
    AddressError       the bootstrap servers are not HOST:PORT
  SecurityError        the certificate or the user is refused
  UnsupportedError     the broker does not know the request in a version that this client knows
  RefusedError         the broker's error code
  AdvertisedError      the addresses that the brokers advertise cannot be reached
  RetriableError       the same request may succeed later
    UnreachableError   nothing listens at the address
    NoAnswerError      no response in time
      ClosedError      the broker closed the connection instead of a response
    NotKafkaError      the response is not one of Kafka's

`hint` is what to do instead, if the client knows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.wording.errors import ReportedError

if TYPE_CHECKING:
    from ottla.protocol.errors import ErrorCode


class ClientError(ReportedError):
    """A request has no result."""

    cluster: str | None = None
    """Which of its clusters the error is of, set by a caller that has several."""

    @property
    def reason(self) -> str:
        """The text as a part of a longer sentence."""
        return self.message.rstrip(".")


class SettingsError(ClientError):
    """The settings cannot be used; nothing was tried."""


class AddressError(SettingsError):
    """The bootstrap servers are not HOST:PORT. `example` is what they could be."""

    def __init__(self, message: str, example: str) -> None:
        super().__init__(message)
        self.example = example


class SecurityError(ClientError):
    """The certificate or the user is refused. `to_set`: settings that would help, as words."""

    def __init__(self, message: str, hint: str | None = None, to_set: str | None = None) -> None:
        super().__init__(message, hint if to_set is None else setting_hint(to_set))
        self.to_set = to_set


def setting_hint(to_set: str, option: str = "--client-config") -> str:
    """How a command line is told these settings. `option`: of the cluster that wants them."""
    return f"Set {to_set} (with {option}, or in a profile)."


class UnsupportedError(ClientError):
    """The broker does not know the request in a version that this client knows."""


class Needs(NamedTuple):
    """The permission that a request needs; the kind of resource follows from the error code."""

    operation: str
    """As in an ACL: "Read"."""
    name: str | None = None
    """Of the resource; None: the cluster has none."""


class RefusedError(ClientError):
    """The broker's error code. The text is "cannot <doing>: <reason>.". `needs`: what the request
    needed, if it was refused for lack of a permission.
    """

    def __init__(
        self, doing: str, code: ErrorCode, message: str | None = None, needs: Needs | None = None
    ) -> None:
        reason = reason_of(code, message)
        # A name that the broker does not know may be answered with a question.
        super().__init__(f"cannot {doing}: {reason}" + ("" if reason.endswith("?") else "."))
        self.code = code
        self.needs = needs

    @property
    def lacking(self) -> tuple[str, ...] | None:
        """The missing permission: operation, kind of resource and its name, as words of an ACL.
        None for another error, or if it is not known.
        """
        kind = _KINDS.get(self.code.name)
        if kind is None or self.needs is None or (kind != "cluster" and self.needs.name is None):
            return None
        operation, name = self.needs
        return (operation, kind) if kind == "cluster" else (operation, kind, str(name))


class AdvertisedError(ClientError):
    """The addresses that the brokers advertise cannot be reached; all requests but the first use
    those.
    """

    def __init__(self, bootstrap: str, advertised: Iterable[object]) -> None:
        super().__init__(
            f"the broker at {bootstrap} advertises {', '.join(map(str, advertised))}, "
            "which cannot be reached from this machine."
        )


class RetriableError(ClientError):
    """The same request may succeed later."""


class UnreachableError(RetriableError):
    """Nothing listens at the address."""


class NoAnswerError(RetriableError):
    """No response in time."""


class ClosedError(NoAnswerError):
    """The broker closed the connection instead of a response."""


class NotKafkaError(RetriableError):
    """The response is not one of Kafka's."""


class Refusal(NamedTuple):
    """The broker's error for one part of a request."""

    code: ErrorCode
    message: str | None

    @property
    def reason(self) -> str:
        """As a part of a sentence."""
        return reason_of(self.code, self.message)


_KINDS: Final = {
    "topic_authorization_failed": "topic",
    "group_authorization_failed": "group",
    "cluster_authorization_failed": "cluster",
    "transactional_id_authorization_failed": "transactional-id",
}
"""The kind of resource by the name of Kafka's error: as in an ACL."""


def reason_of(code: ErrorCode, message: str | None = None) -> str:
    """A broker's error as a part of a sentence: its message, or the code in words."""
    return (message or code.name.replace("_", " ")).rstrip(".")
