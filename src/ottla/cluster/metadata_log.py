"""The controller's metadata log: the latest metadata deltas, which the other brokers fetch.

A fetch names the version that the broker has and waits up to `wait_ms`. The response holds the
deltas after that version, or a snapshot if the broker is too far behind, starts, or has the version
of another controller. A lost response does no harm: the next fetch names the same version. The log
keeps the last `MAX_KEPT` deltas, encoded, because every broker fetches the same ones.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from ottla.controller.delta_text import encode_delta, encode_snapshot
from ottla.controller.image import ClusterImage, MetadataDelta
from ottla.runtime.slices import in_turns
from ottla.runtime.waiting import Waiter, Watcher, wake

MAX_KEPT: Final = 1_000
MAX_IN_ANSWER: Final = 200
MAX_ANSWER_BYTES: Final = 256 << 10
"""Of deltas in one response, or one delta. Its JSON is written and read without a pause: 5 ms each
way. 200 topics of 1,000 partitions were 10 MB, which took 200 ms to write and 600 ms to read."""
UNKNOWN_VERSION: Final = -1


@dataclass(slots=True)
class KeptDelta:
    """A delta; its size is found with the first response that has it: a broker alone needs none."""

    version: int
    delta: Any
    _size_bytes: int = 0

    def size_bytes(self) -> int:
        if not self._size_bytes:
            self._size_bytes = len(json.dumps(self.delta))
        return self._size_bytes


class MetadataLog:
    """The log of one controller tenure. `image` is the controller's, at the log's version."""

    def __init__(self, image: ClusterImage) -> None:
        self.waiters: dict[Watcher, None] | None = None
        self._image = image
        self._kept: deque[KeptDelta] = deque(maxlen=MAX_KEPT)
        self._closed = False

    @property
    def version(self) -> int:
        return self._image.version

    def append(self, delta: MetadataDelta) -> None:
        """Append a delta that is in the image already."""
        self._kept.append(KeptDelta(self._image.version, encode_delta(delta)))
        wake(self)

    def close(self) -> None:
        """The tenure is over: waiting fetches are answered."""
        self._closed = True
        wake(self)

    async def wait_past(self, version: int, max_ms: int) -> None:
        """Return when there are deltas after `version`, or after `max_ms`."""
        if version == self.version and not self._closed and max_ms > 0:
            await Waiter((self,)).wait(max_ms)

    async def since(self, version: int) -> dict[str, Any]:
        """The response to a broker that has `version`: {"version", "deltas" or "snapshot"}. The
        snapshot of many topics takes several turns of the event loop.
        """
        if version == self.version:
            return {"version": version, "deltas": []}
        oldest = self._kept[0].version - 1 if self._kept else self.version
        if version < oldest or version > self.version:
            newest = self.version
            return {"version": newest, "snapshot": await in_turns(encode_snapshot(self._image))}
        deltas: list[Any] = []
        left_bytes = MAX_ANSWER_BYTES
        for each in self._kept:
            if each.version <= version:
                continue
            left_bytes -= each.size_bytes()
            if deltas and (left_bytes < 0 or len(deltas) == MAX_IN_ANSWER):
                break
            deltas.append(each.delta)
        return {"version": version + len(deltas), "deltas": deltas}
