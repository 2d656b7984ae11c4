"""What a visitor is told instead of a page.

VisitError           see ReportedError; `status` is that of HTTP
  NotFoundError      404
  ForbiddenError     403
  BadFormError       400
  ConflictError      409
  BusyError          503
  StoppingError      503
"""

from __future__ import annotations

from ottla.wording.errors import ReportedError


class VisitError(ReportedError):
    """There is no such page for this visitor."""

    status = 400


class NotFoundError(VisitError):
    """What the address names does not exist."""

    status = 404


class ForbiddenError(VisitError):
    """The visitor may not do this."""

    status = 403


class BadFormError(VisitError):
    """What was filled in cannot be used; nothing was tried."""

    status = 400
    is_usage = True


class ConflictError(VisitError):
    """Somebody else has changed it meanwhile, or uses it."""

    status = 409


class BusyError(VisitError):
    """Too many pages wait for the cluster."""

    status = 503


class StoppingError(VisitError):
    """The console stops, and the page is not there yet."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the console stops.", "Load the page again once it runs again.")


def said(error: ReportedError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message
