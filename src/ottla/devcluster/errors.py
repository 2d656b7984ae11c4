"""Why a cluster for development cannot start, or does not do what it is asked."""

from __future__ import annotations

from ottla.wording.errors import ReportedError


class DevClusterError(ReportedError):
    """The text is one sentence. `hint` is what to do instead, if that is known."""


class OptionError(DevClusterError):
    """An option of `ottla cluster start` is not valid; nothing was tried."""

    is_usage = True
