"""Why a partition's folder cannot be read."""

from __future__ import annotations

from ottla.wording.errors import ReportedError


class InspectError(ReportedError):
    """The text is one sentence. `hint` is what to do instead, if that is known."""
