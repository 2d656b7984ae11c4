"""Users with their passwords, as kafka-storage takes them (KIP-900).

    SCRAM-SHA-256=[name=alice,password="her, secret",iterations=8192]

Several are separated by semicolons or line ends. As Kafka's ScramParser, without its salts.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.security.sasl.scram import HASHES, MAX_ITERATIONS, MIN_ITERATIONS

_USER: Final = re.compile(
    r"\s*(?P<mechanism>[A-Z0-9-]+)=\[(?P<fields>(?:\"[^\"]*\"|[^\"\]])*)\]\s*(?:[;\n]|\Z)"
)
_FIELD: Final = re.compile(r'\s*(?P<name>\w+)=(?:"(?P<quoted>[^"]*)"|(?P<value>[^,"]*))\s*(?:,|\Z)')
_NAMES: Final = ("name", "password", "iterations")


class ScramUser(NamedTuple):
    """What a user logs in with."""

    mechanism: str
    name: str
    password: str
    iterations: int


def parse_scram_users(text: str) -> list[ScramUser]:
    """Raises ValueError, whose text has no password."""
    users: list[ScramUser] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _USER.match(text, position)
        if found is None or found["mechanism"] not in HASHES:
            raise ValueError(
                f"expected {' or '.join(HASHES)}=[name=...,password=...], separated by semicolons"
            )
        position = found.end()
        users.append(_user(found["mechanism"], _fields(found["fields"])))
    return users


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        found = _FIELD.match(text, position)
        if found is None or found["name"] not in _NAMES or found["name"] in fields:
            raise ValueError(f"expected {', '.join(_NAMES)}, each once, as name=value")
        position = found.end()
        fields[found["name"]] = found["value"] if found["quoted"] is None else found["quoted"]
    return fields


def _user(mechanism: str, fields: dict[str, str]) -> ScramUser:
    if not fields.get("name") or not fields.get("password"):
        raise ValueError("each user needs a name and a password")
    digits = fields.get("iterations", str(MIN_ITERATIONS))
    if not digits.isdecimal() or not MIN_ITERATIONS <= int(digits[:9]) <= MAX_ITERATIONS:
        raise ValueError(f"iterations must be from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return ScramUser(mechanism, fields["name"], fields["password"], int(digits))
