from tests.groups.consumer.world import topic_id

from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.state_partitions import all_deleting, missing
from ottla.groups.share.stored import ShareRecord, StatesKey, StatesValue, StateTopic

T = topic_id("t")
TOPICS = Topics(1, {"t": Topic(T, 3)})


def test_a_clock_that_was_set_back_makes_nobody_wait() -> None:
    group = ShareGroup("g")
    states = StatesValue({T: StateTopic("t", frozenset({0, 1}))}, {}, {})
    group.apply(ShareRecord(StatesKey("g"), states), 100_000)

    def numbers(now_ms: int) -> frozenset[int]:
        return missing(group, ("t", "unknown"), TOPICS, 30_000, now_ms)[T].partitions

    assert numbers(100_000) == {2}
    assert numbers(129_999) == {2}
    assert numbers(130_000) == {0, 1, 2}
    assert numbers(99_999) == {0, 1, 2}


def test_a_topic_that_is_gone_does_not_keep_a_group() -> None:
    gone, old = topic_id("gone"), topic_id("old t")
    states = StatesValue(
        {T: StateTopic("t", frozenset({0})), gone: StateTopic("gone", frozenset({0}))},
        {T: StateTopic("t", frozenset({1})), old: StateTopic("t", frozenset({0, 1}))},
        {},
    )
    left, asked = all_deleting(states, TOPICS)
    assert left == StatesValue({}, {}, {T: "t"})
    assert asked == {T: frozenset({0, 1})}
    states = StatesValue({}, {old: StateTopic("t", frozenset({0}))}, {T: "t", gone: "gone"})
    left, asked = all_deleting(states, TOPICS)
    assert left == StatesValue({}, {}, {T: "t"})
    assert asked == {T: frozenset({0, 1, 2})}
