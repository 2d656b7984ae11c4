"""The quota of requests that create and delete partitions (KIP-599, ControllerMutationQuota).

Versions that know THROTTLING_QUOTA_EXCEEDED get it for each topic while the quota is used up; older
ones are served, and throttled afterwards.
"""

from __future__ import annotations

from typing import Any

from ottla.api.context import Context
from ottla.controller.plan import Charge, free


class MutationQuota:
    """What one request uses."""

    def __init__(self, context: Context, *, strict_since: int) -> None:
        """`strict_since` is the first version that knows the error."""
        throttling = context.broker.throttling
        strict = context.version >= strict_since
        self._used = throttling.mutations(context, strict=strict) if throttling.is_on else None
        self.charge: Charge = free if self._used is None else self._used.charge

    def after(self, response: Any) -> Any:
        """The response, with the time to wait."""
        if self._used is not None and self._used.throttle_ms:
            response.throttle_time = self._used.throttle_ms
        return response
