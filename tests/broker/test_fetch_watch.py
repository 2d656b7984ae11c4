import asyncio
from typing import Any

from ottla.broker.fetch_watch import CONSUMER, FetchWatch, Key
from ottla.broker.waiting import Change, Watcher, wake

A: Key = ("t", 0)
B: Key = ("t", 1)
FOLLOWER = 2


class Partition:
    def __init__(self) -> None:
        self.waiters: dict[Watcher, None] | None = None
        self.idle: list[tuple[int, int]] = []

    def was_idle(self, broker_id: int, seen_ms: int) -> None:
        self.idle.append((broker_id, seen_ms))


def resting(replica: int = CONSUMER, now_ms: int = 7) -> tuple[FetchWatch, Partition, Partition]:
    """Both were read to their ends."""
    watch, one, other = FetchWatch(), Partition(), Partition()
    watch.begin("terms", (A, B), replica, now_ms)
    assert list(watch) == [A, B]
    for key, partition in ((A, one), (B, other)):
        watch.rests(key)
        watch.watch(key, partition)
    assert list(watch) == []
    return watch, one, other


async def is_woken(watch: FetchWatch, event: Any, *arguments: Any) -> bool:
    """Whether the event ends a wait."""
    waiting = asyncio.ensure_future(watch.wait(60_000))
    await asyncio.sleep(0)
    event(*arguments)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    woken = waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return woken


async def test_what_changes_is_due_over_all_requests_of_the_session() -> None:
    watch, _, other = resting()
    wake(other)
    wake(other)
    watch.begin("terms", (A, B), CONSUMER, 8)
    assert list(watch) == [B]
    watch.rests(B)
    assert await is_woken(watch, wake, other)


async def test_other_terms_make_everything_due() -> None:
    watch, _, _ = resting()
    watch.begin("others", (A, B), CONSUMER, 8)
    assert list(watch) == [A, B]


async def test_a_consumer_is_woken_by_what_is_committed_and_a_follower_by_what_is_appended() -> (
    None
):
    consuming, one, _ = resting()
    assert not await is_woken(consuming, wake, one, Change.APPENDED)
    assert list(consuming) == []
    assert await is_woken(consuming, wake, one, Change.COMMITTED)
    assert list(consuming) == [A]
    following, one, _ = resting(FOLLOWER)
    assert not await is_woken(following, wake, one, Change.COMMITTED)
    assert list(following) == [A], "told with the next response"
    assert await is_woken(following, wake, one, Change.APPENDED)


async def test_a_follower_is_known_to_have_fetched_what_rested_until_it_changed() -> None:
    watch, one, other = resting(FOLLOWER)
    watch.begin("terms", (A, B), FOLLOWER, 50)
    wake(one, Change.APPENDED)
    wake(one, Change.APPENDED)
    watch.begin("terms", (A, B), FOLLOWER, 60)
    watch.close()
    assert one.idle == [(FOLLOWER, 50)]
    assert other.idle == [(FOLLOWER, 60)]


async def test_the_served_one_waits_for_the_others() -> None:
    watch, one, other = resting()
    wake(one)
    wake(other)
    watch.served(A)
    assert list(watch) == [B, A]


async def test_a_forgotten_partition_is_watched_no_more() -> None:
    watch, one, other = resting(FOLLOWER)
    wake(other)
    watch.forget([A, B, ("unknown", 0)])
    assert (one.waiters, other.waiters, list(watch)) == (None, None, [])
    assert one.idle == [(FOLLOWER, 7)]


async def test_a_partition_that_is_gone_is_held_no_more_and_its_heir_is_watched() -> None:
    watch, one, _ = resting()
    assert await is_woken(watch, wake, one, Change.GONE)
    assert one.waiters is None
    assert list(watch) == [A]
    heir = Partition()
    watch.watch(A, heir)
    watch.rests(A)
    wake(heir)
    assert list(watch) == [A]


async def test_an_heir_may_come_before_the_partition_is_gone() -> None:
    watch, one, _ = resting()
    heir = Partition()
    watch.watch(A, heir)
    wake(one, Change.GONE)
    watch.forget([A])
    assert heir.waiters is None


async def test_the_end_wakes_who_waits_and_nothing_is_watched_after_it() -> None:
    watch, one, other = resting()
    assert await is_woken(watch, watch.close)
    watch.watch(A, one)
    assert (one.waiters, other.waiters) == (None, None)


async def test_the_time_ends_a_wait() -> None:
    watch, _, _ = resting()
    await asyncio.wait_for(watch.wait(1), 30)
