"""Which listeners speak WebSocket, and to whom.

The security protocol of such a listener is below and inside it as ever: with SSL it is `wss`, and
with SASL a client authenticates in its first messages.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.config.error import invalid_value
from ottla.config.setting import Settings, integer, words
from ottla.config.validator import at_least, list_of

ANY_ORIGIN: Final = "*"
WEBSOCKET_LISTENERS: Final = "ottla.websocket.listeners"
ORIGINS: Final = "ottla.websocket.origins"
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+|null|\*", re.ASCII)


class WebSocketSettings(Settings):
    """Those but the first may be set for one listener."""

    ottla_websocket_listeners = words(
        WEBSOCKET_LISTENERS,
        (),
        "Names of the listeners that speak WebSocket: ws with PLAINTEXT and SASL_PLAINTEXT, wss "
        "with SSL and SASL_SSL.",
        list_of(),
    )
    ottla_websocket_origins = words(
        ORIGINS,
        (),
        "The websites whose pages may connect over WebSocket, such as https://example.org; * for "
        "all. Empty: no page, only programs that are no browser.",
        list_of(),
    )
    ottla_websocket_max_frame_bytes = integer(
        "ottla.websocket.max.frame.bytes",
        524_288,
        "Maximum size of a frame of WebSocket. A request may have many.",
        at_least(1024),
    )


def check_origins(origins: tuple[str, ...]) -> None:
    """Raises ConfigError."""
    for each in origins:
        if _ORIGIN.fullmatch(each) is None:
            reason = "Expected https://HOST, http://HOST:PORT or *, without a path"
            raise invalid_value(ORIGINS, each, reason)
