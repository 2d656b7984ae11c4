"""A warning about records that the topic's retention may delete soon after they were sent.

Retention goes by the records' timestamps, so records that are copied with theirs from an older
topic may be older than `retention.ms` on arrival. Nothing else says why the topic empties itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from ottla.client.admin.configs import topic_settings
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.journey.formatting import format_elapsed, format_span
from ottla.messaging.jsonlines import Outgoing
from ottla.messaging.lines import Decode


class OldTimestamps:
    """Warns once. The topic's settings are asked for at the first record with a timestamp."""

    def __init__(self, client: Client, topic: str, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._client = client
        self._topic = topic
        self._now_ms = int(time.time() * 1000)
        self._kept_ms: int | None = None
        self._is_asked = False
        self._has_warned = False

    def watching(self, decode: Decode) -> Decode:
        """The same for each line in turn, with a look at its record."""
        lines = count(1)

        def watched(line: bytes) -> Outgoing:
            record = decode(line)
            self.look(record.timestamp_ms, next(lines))
            return record

        return watched

    def look(self, timestamp_ms: int | None, line: int) -> None:
        """Warn if this is the first record that is too old; None is a record of now."""
        if timestamp_ms is None or self._has_warned:
            return
        if not self._is_asked:
            self._is_asked, self._kept_ms = True, kept_ms(self._client, self._topic)
        age_ms = self._now_ms - timestamp_ms
        if self._kept_ms is None or age_ms <= self._kept_ms:
            return
        self._has_warned = True
        self._tell(
            f"Warning: the timestamp of line {line} is {format_elapsed(age_ms)} old, and "
            f"{self._topic} keeps records for {format_span(self._kept_ms)} (retention.ms), so such "
            "records may be deleted soon."
        )
        self._tell(f"  To keep them: ottla config alter topic {self._topic} retention.ms=-1")


def kept_ms(client: Client, topic: str) -> int | None:
    """How long the topic keeps records by their own timestamps; None without such a limit, or if
    this user may not read the settings.
    """
    try:
        entries = topic_settings(client, [topic])[topic]
    except ClientError:
        return None
    settings = {entry.name: entry.value or "" for entry in entries}
    by_producer = settings.get("message.timestamp.type") == "CreateTime"
    if not by_producer or "delete" not in settings.get("cleanup.policy", ""):
        return None
    kept = int(settings.get("retention.ms", -1))
    return kept if kept >= 0 else None
