"""What the controller tells the other brokers: the news since the version that they have.

Brokers ask and wait (`wait_ms`); an answer is the news behind their version, or a snapshot where
they are too far behind, begin anew, or come from another controller's time. So a lost answer heals
itself with the next question. The last `MAX_KEPT` pieces are kept, already in the form in which
they are sent, because every broker asks for the same.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from ottla.broker.waiting import Waiter, Watcher, wake
from ottla.controller.image import ClusterImage, News
from ottla.controller.news_text import encode_news, encode_snapshot

MAX_KEPT: Final = 1_000
MAX_IN_ANSWER: Final = 200
UNKNOWN_VERSION: Final = -1


class NewsFeed:
    """One controller's term. `image` is the controller's own, at the version told last."""

    def __init__(self, image: ClusterImage) -> None:
        self.waiters: set[Watcher] | None = None
        self._image = image
        self._kept: deque[tuple[int, Any]] = deque(maxlen=MAX_KEPT)
        self._closed = False

    @property
    def version(self) -> int:
        return self._image.version

    def told(self, news: News) -> None:
        """A subscriber of the view: the image has `news` by now."""
        self._kept.append((self._image.version, encode_news(news)))
        wake(self)

    def close(self) -> None:
        """The term is over; who waits is answered."""
        self._closed = True
        wake(self)

    async def wait_beyond(self, version: int, max_ms: int) -> None:
        """Returns when there is news behind `version`, or the time is up."""
        if version == self.version and not self._closed and max_ms > 0:
            await Waiter((self,)).wait(max_ms)

    def since(self, version: int) -> dict[str, Any]:
        """The answer to a broker that has `version`: {"version", "news"} or {..., "snapshot"}."""
        if version == self.version:
            return {"version": version, "news": []}
        oldest = self._kept[0][0] - 1 if self._kept else self.version
        if version < oldest or version > self.version:
            return {"version": self.version, "snapshot": encode_snapshot(self._image)}
        news = [each for at, each in self._kept if at > version][:MAX_IN_ANSWER]
        return {"version": version + len(news), "news": news}
