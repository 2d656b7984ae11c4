from typing import Any

from ottla.replica.fetch_wait import NO_CONDITIONS, FetchWait, Key, ReadConditions
from ottla.replication.leader import FetchingReplica
from ottla.runtime.waiting import Change, Watcher, wake

A: Key = ("t", 0)
B: Key = ("t", 1)
CONSUMER = NO_CONDITIONS
FOLLOWER = ReadConditions(FetchingReplica(2))


class Partition:
    def __init__(self) -> None:
        self.waiters: dict[Watcher, None] | None = None
        self.idle: list[tuple[int, int]] = []

    def was_idle(self, broker_id: int, seen_ms: int) -> None:
        self.idle.append((broker_id, seen_ms))


def resting(
    conditions: ReadConditions = CONSUMER, now_ms: int = 7
) -> tuple[FetchWait, Partition, Partition]:
    """Both partitions were read to their ends."""
    wait, one, other = FetchWait(), Partition(), Partition()
    wait.requested((A, B))
    wait.begin(conditions, (A, B), now_ms)
    assert wait.due() == [A, B]
    for key, partition in ((A, one), (B, other)):
        wait.was_read(key, partition, at_end=True)
    wait.watch()
    assert wait.due() == []
    return wait, one, other


def is_woken(wait: FetchWait, event: Any, *arguments: Any) -> bool:
    """Whether the event wakes a sleeping request."""
    calls: list[int] = []

    def woken() -> None:
        calls.append(1)

    wait.sleep(woken)
    event(*arguments)
    wait.wakes(woken)
    return bool(calls)


def test_a_partly_read_partition_stays_due() -> None:
    wait, one = FetchWait(), Partition()
    wait.requested([A])
    wait.was_read(A, one, at_end=False)
    wait.watch()
    assert wait.due() == [A]
    assert is_woken(wait, wake, one)
    assert wait.due() == [A]


def test_a_changed_partition_is_due_across_requests() -> None:
    wait, _, other = resting()
    wake(other)
    wake(other)
    wait.begin(CONSUMER, (A, B), 8)
    assert wait.due() == [B]
    wait.was_read(B, other, at_end=True)
    assert is_woken(wait, wake, other)


def test_a_partition_whose_follower_left_is_due_at_the_next_fetch() -> None:
    for conditions, due in ((FOLLOWER, [B]), (CONSUMER, [])):
        wait, _, other = resting(conditions)
        assert not is_woken(wait, wake, other, Change.LEFT)
        assert wait.due() == due


def test_a_partition_requested_again_is_due() -> None:
    wait, _, _ = resting()
    wait.requested([B])
    assert wait.due() == [B]


def test_other_conditions_make_everything_due() -> None:
    for changed in (
        ReadConditions(committed_only=True), ReadConditions(rack="r"),
        ReadConditions(leader_only=False), FOLLOWER,
    ):  # fmt: skip
        wait, _, _ = resting()
        wait.begin(changed, (A, B), 8)
        assert wait.due() == [A, B]
        for key in (A, B):
            wait.was_read(key, None, at_end=True)
        wait.begin(changed, (A, B), 9)
        assert wait.due() == []


def test_a_commit_wakes_consumers_and_an_append_wakes_followers() -> None:
    consuming, one, _ = resting()
    assert not is_woken(consuming, wake, one, Change.APPENDED)
    assert consuming.due() == []
    assert is_woken(consuming, wake, one, Change.COMMITTED)
    assert consuming.due() == [A]
    following, one, _ = resting(FOLLOWER)
    assert not is_woken(following, wake, one, Change.COMMITTED)
    assert following.due() == [A], "answered with the next response"
    assert is_woken(following, wake, one, Change.APPENDED)


def test_a_follower_counts_as_fetching_until_the_partition_changed() -> None:
    wait, one, other = resting(FOLLOWER)
    wait.begin(FOLLOWER, (A, B), 50)
    wake(one, Change.APPENDED)
    wake(one, Change.APPENDED)
    wait.begin(FOLLOWER, (A, B), 60)
    wait.close()
    assert one.idle == [(2, 50)]
    assert other.idle == [(2, 60)]


def test_a_consumer_is_not_a_replica() -> None:
    wait, one, other = resting()
    wake(one)
    wait.close()
    assert one.idle == other.idle == []


def test_the_served_partition_comes_after_the_others() -> None:
    wait, one, other = resting()
    wake(one)
    wake(other)
    wait.served(A)
    assert wait.due() == [B, A]
    wait.was_read(A, one, at_end=True)
    wait.served(A)
    assert wait.due() == [B], "it rests"


def test_a_forgotten_partition_is_no_longer_watched() -> None:
    wait, one, other = resting(FOLLOWER)
    wake(other)
    wait.forget([A, B, ("unknown", 0)])
    assert (one.waiters, other.waiters, wait.due()) == (None, None, [])
    assert one.idle == [(2, 7)]


def test_a_deleted_partition_is_dropped_and_its_successor_watched() -> None:
    wait, one, _ = resting()
    assert is_woken(wait, wake, one, Change.GONE)
    assert one.waiters is None
    assert wait.due() == [A]
    successor = Partition()
    wait.was_read(A, successor, at_end=True)
    wait.watch()
    wake(successor)
    assert wait.due() == [A]


def test_a_successor_may_appear_before_the_deletion() -> None:
    wait, one, _ = resting()
    successor = Partition()
    wait.was_read(A, successor, at_end=True)
    wait.watch()
    wake(one, Change.GONE)
    wait.forget([A])
    assert successor.waiters is None


def test_close_wakes_sleepers_and_stops_watching() -> None:
    wait, one, other = resting()
    assert is_woken(wait, wait.close)
    wait.was_read(A, one, at_end=True)
    wait.watch()
    assert (one.waiters, other.waiters) == (None, None)


def test_a_fetch_that_ends_at_once_watches_nothing() -> None:
    wait, one = FetchWait(), Partition()
    wait.requested([A])
    wait.was_read(A, one, at_end=False)
    wait.close()
    assert one.waiters is None


def test_every_sleeper_is_woken_once() -> None:
    wait, one, _ = resting()
    woken: list[str] = []

    def first() -> None:
        woken.append("first")

    def second() -> None:
        woken.append("second")

    wait.sleep(first)
    wait.sleep(second)
    wake(one)
    wait.wakes(first)
    wake(one)
    assert woken == ["first", "second", "second"]
