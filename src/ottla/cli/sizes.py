"""`10MB` as a number of bytes."""

from __future__ import annotations

import re
from typing import Final

from ottla.cli.failures import UsageFailed

WORDS: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
FORM: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII | re.IGNORECASE)


def parse_size(option: str, text: str, between: str = " ") -> int:
    """`10MB`, `512KiB` or a number of bytes; `between`: what is typed between the option and it.
    Raises UsageFailed.
    """
    found = FORM.fullmatch(text.strip())
    factor = WORDS.get(found[2].lower()) if found else None
    size = int(float(found[1]) * factor) if found and factor else 0
    if size < 1:
        raise UsageFailed(
            f"{option}: {text!r} is not a size.",
            f"For example: {option}{between}10MB; also B, kB, GB, KiB, MiB, GiB.",
        )
    return size
