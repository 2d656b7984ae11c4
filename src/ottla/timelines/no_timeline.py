"""The timeline of a broker that keeps none."""

from collections.abc import Iterable

from ottla.timelines.step import Before, By


class NoTimeline:
    """Ignores all events: `ottla.journey.enable` is false."""

    __slots__ = ()

    def appended(
        self,
        base_offset: int,
        last_offset: int,
        now_ms: int,
        client_id: str,
        producer_id: int,
        is_plain: bool = False,
    ) -> None:
        return

    def high_watermark(self, offset: int, now_ms: int) -> None:
        return

    def committed(
        self,
        group: str,
        offset: int,
        metadata: str | None,
        now_ms: int,
        before: Before | None = None,
        by: By = By.UNKNOWN,
        noted_ms: int | None = None,
    ) -> None:
        return

    def forgotten(
        self, group: str, now_ms: int, reason: str, before: Before, noted_ms: int | None = None
    ) -> None:
        return

    def started_at(self, offset: int, now_ms: int, reason: str) -> None:
        return

    def truncated(self, end_offset: int, now_ms: int) -> None:
        return

    def replicated(self, broker_id: int, offset: int, now_ms: int) -> None:
        return

    def in_sync(
        self,
        leader: int,
        leader_epoch: int,
        isr: Iterable[int],
        end_offset: int,
        now_ms: int,
        partition_epoch: int = -1,
        *,
        leads: bool = True,
    ) -> None:
        return

    def diverged(self, broker_id: int, from_offset: int, to_offset: int, now_ms: int) -> None:
        return
