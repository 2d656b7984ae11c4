"""A journey that is off costs nothing and keeps nothing."""

from ottla.timelines.no_timeline import NoTimeline
from ottla.timelines.partition_timeline import Timeline
from ottla.timelines.step import Before


def test_no_timeline_takes_the_same_calls_and_keeps_nothing() -> None:
    nothing: Timeline = NoTimeline()
    nothing.appended(0, 9, 2000, "a", -1)
    nothing.high_watermark(10, 2000)
    nothing.committed("g", 5, None, 2000)
    nothing.forgotten("g", 2000, "OffsetDelete", Before(5, ""))
    nothing.started_at(1, 2000, "DeleteRecords")
    nothing.truncated(1, 2000)
    nothing.replicated(2, 1, 2000)
    nothing.in_sync(1, 0, (1, 2), 1, 2000)
    nothing.diverged(2, 1, 3, 2000)
    assert not hasattr(nothing, "__dict__")
