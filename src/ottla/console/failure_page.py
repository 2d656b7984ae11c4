"""What failed, as a page: what happened, what to do, and whether it may pass by itself.

A page about a cluster that is away asks again every few seconds, also without JavaScript.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ottla.client.errors import (
    AdvertisedError,
    ClientError,
    RefusedError,
    RetriableError,
    SecurityError,
    UnsupportedError,
)
from ottla.client.permission_hint import permission_hint
from ottla.console.console import Console
from ottla.console.errors import VisitError
from ottla.console.sessions import Session
from ottla.console.templates import rendered
from ottla.messaging.record_headers import HeadersError
from ottla.protocol.errors import ErrorCode
from ottla.wording.errors import ReportedError

MISSING: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.group_id_not_found)


def failure_page(
    error: ReportedError, console: Console, session: Session | None, url: str, theme: str
) -> Response:
    """The page of an error."""
    return rendered(
        "failure.html",
        console,
        session,
        status=status_of(error),
        url=url,
        theme=theme,
        messages=[],
        title=title_of(error),
        what=error.message,
        hint=hint_of(error, session),
        comes_back=isinstance(error, RetriableError),
    )


def status_of(error: ReportedError) -> int:
    """Of HTTP."""
    if isinstance(error, VisitError):
        return error.status
    if isinstance(error, HeadersError):
        return 409
    if isinstance(error, RefusedError):
        if error.lacking is not None:
            return 403
        return 404 if error.code in MISSING else 409
    if isinstance(error, ClientError):
        return 501 if isinstance(error, UnsupportedError) else 503
    return 400 if error.is_usage else 502


def title_of(error: ReportedError) -> str:
    if isinstance(error, RetriableError | AdvertisedError):
        return "The cluster does not respond"
    if isinstance(error, SecurityError):
        return "The cluster refuses this console"
    if isinstance(error, UnsupportedError):
        return "This Kafka is too old for that"
    if isinstance(error, RefusedError):
        return "Not permitted" if error.lacking is not None else "The cluster refuses that"
    titles = {404: "There is no such page", 403: "Not permitted", 503: "Too many pages at once"}
    if isinstance(error, VisitError) and error.status in titles:
        return titles[error.status]
    return "That cannot be done"


def hint_of(error: ReportedError, session: Session | None) -> str | None:
    """What to do."""
    if isinstance(error, RefusedError) and error.hint is None:
        return permission_hint(session.access.principal if session else None, error.lacking)
    return error.hint
