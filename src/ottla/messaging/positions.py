"""Where to start: `beginning`, `end`, a time, an age, or an offset."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from ottla.messaging.start import Start
from ottla.wording.errors import ReportedError

AGO: Final = re.compile(r"(\d{1,19})(ms|s|m|h|d)", re.ASCII)
MAX_MS: Final = 2**63 - 1
"""A time in a request has 64 bits."""
MAX_AGE_DAYS: Final = 36_500
UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LEAST_MS: Final = 10**10
"""A smaller number is meant as an offset, or as seconds: it is a time of spring 1970 at the latest.
"""
BEGINNING: Final = frozenset({"beginning", "earliest", "start"})
END: Final = frozenset({"end", "latest"})


class PositionError(ReportedError):
    """It is no time, age or place to start."""

    is_usage = True


def parse_age(option: str, text: str) -> int:
    """`15m` in milliseconds. Raises PositionError."""
    matched = AGO.fullmatch(text)
    if matched is None:
        raise PositionError(f"{option}: {text!r} is not an age.", "For example: 30s, 15m, 2h, 1d.")
    age_ms = int(matched[1]) * UNIT_MS[matched[2]]
    if age_ms > MAX_AGE_DAYS * UNIT_MS["d"]:
        raise PositionError(f"{option}: {text!r} is too long.", f"At most {MAX_AGE_DAYS}d.")
    return age_ms


def parse_time(option: str, text: str, now_ms: int) -> int:
    """A time in ms since 1970: `2026-01-31T12:00`, `2026-01-31`, `1700000000000`, or `15m` ago.

    A time without a zone is local. Raises PositionError.
    """
    if text.isdecimal() and len(text) < 20 and int(text) <= MAX_MS:
        return int(text)
    ago = AGO.fullmatch(text)
    if ago:
        return max(0, now_ms - int(ago[1]) * UNIT_MS[ago[2]])
    try:
        at = datetime.fromisoformat(text)
        return max(0, int(at.timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise PositionError(
            f"{option}: {text!r} is not a time.",
            "Allowed: 2026-01-31T12:00 (local), 2026-01-31T12:00Z, ms since 1970, or an age: "
            "15m, 2h, 3d.",
        ) from error


def parse_start(text: str, now_ms: int) -> Start:
    """The value of `--from`. Raises PositionError."""
    word = text.lower()
    if word in BEGINNING:
        return Start("beginning")
    if word in END:
        return Start("end")
    if not word[:1].isdigit():
        raise PositionError(
            f"--from: {text!r} is not beginning, end or a time.",
            "For example: --from beginning, --from 15m, --from 2026-01-31T12:00",
        )
    if word.isdecimal() and 0 < int(word[:20]) < LEAST_MS:
        raise PositionError(
            f"--from: {text} is not a time in ms since 1970.",
            f"For an offset: --partition N --offset {text}. For seconds: --from {text}000",
        )
    return Start("time", parse_time("--from", text, now_ms))
