"""The names that Kafka allows for a topic (`Topic.validate`)."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def wrong_name(name: object) -> str | None:
    """Return why this is no topic's name, None when it is one."""
    if isinstance(name, str) and _NAME.fullmatch(name) and name not in (".", ".."):
        return None
    return (
        f"{name!r} is no topic's name; allowed: letters, digits, '.', '_' and '-', at most 249, "
        "and not only '.' or '..'"
    )
