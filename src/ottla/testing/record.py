"""A record as a test sees it, and what a test expects of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """A record that was read from a topic."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int = 0
    offset: int = 0
    timestamp_ms: int = -1

    @property
    def text(self) -> str:
        """The value as UTF-8."""
        assert self.value is not None, "the record has no value"
        return self.value.decode()

    @property
    def json(self) -> Any:
        """The value, read as JSON."""
        return json.loads(self.text)


Expected: TypeAlias = (
    ReadRecord | str | bytes | tuple[str | bytes | None, Any] | Mapping[str, Any] | None
)
"""What a test expects of a record: its value; a key and a value; or some of its fields by name (the
fields of `ReadRecord`). Text stands for its UTF-8 bytes; a dict or list as the value for any JSON
that means the same.
"""
