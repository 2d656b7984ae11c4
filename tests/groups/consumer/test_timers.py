"""The timers of members."""

from __future__ import annotations

from tests.groups.consumer.world import World

from ottla.groups.consumer.requests import HeartbeatRequest


def test_a_static_member_that_is_replaced_leaves_no_timers() -> None:
    world = World()
    world.set_topic("t", 2)
    join = HeartbeatRequest(
        "g", "a", 0, "client", "/127.0.0.1", instance_id="i",
        rebalance_timeout_ms=60_000, subscribed_topics=frozenset("t"), owned={},
    )  # fmt: skip
    world.heartbeat(join)
    world.heartbeat(HeartbeatRequest("g", "a", -2, "client", "/127.0.0.1", instance_id="i"))
    assert {event.member for _, event in world.timers.values()} == {"a"}
    world.heartbeat(join._replace(member_id="b"))
    assert {event.member for _, event in world.timers.values()} == {"b"}
    assert world.next_timer(world.now_ms + 100_000) is not None, "its session"
