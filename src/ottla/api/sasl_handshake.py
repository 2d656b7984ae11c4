"""SaslHandshake (key 17): chooses a SASL mechanism (KIP-43, KIP-152).

`network.authentication` answers it on a listener with SASL. On any other, or when it is not
due, it is an error: ILLEGAL_SASL_STATE, as in Kafka.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.protocol.access import Access
from ottla.protocol.errors import ErrorCode

KEY: Final = 17
ACCESS: Final[tuple[Access, ...]] = ()
"""Allowed before authentication."""


async def handle(request: Any, context: Context) -> Any:
    return context.messages.SaslHandshakeResponse(error_code=ErrorCode.illegal_sasl_state)
