"""The journey of a record in share groups, asked of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.api.test_share_fetch import ACCEPT, OK, REJECT, RELEASE, Bench

from ottla.api.journey import handle_json
from ottla.network.client_session import ClientSession
from ottla.network.request_context import RequestContext
from ottla.protocol.messages import messages_of
from ottla.share.record_state import RecordState
from ottla.tracing.share_groups import shared_facts


async def shared(bench: Bench, offset: int) -> list[dict[str, Any]]:
    session = ClientSession(7, "127.0.0.1", "PLAINTEXT", "", 0)
    context: Any = RequestContext(bench.node, session, 0, "tests", messages_of(3, 12))
    query = {"journey": 1, "topic": "t", "partition": 0, "offset": offset}
    document = await handle_json(query, context)
    found: list[dict[str, Any]] = document["shared"]
    return found


async def test_what_members_say_is_told(start_node: Any, eventually: Callable[..., Any]) -> None:
    settings = {
        "share_coordinator_state_topic_num_partitions": "1",
        "offsets_topic_num_partitions": "1",
    }
    call = await start_node(**settings)
    await call.create("t")
    await call.create("dlq.t", errors_deadletterqueue_group_enable="true")
    bench = Bench(call)
    await bench.initialize()
    await bench.configure("errors.deadletterqueue.topic.name", "dlq.t")
    await bench.produce(b"a", b"b", b"c", b"d")
    assert await shared(bench, 0) == []
    await bench.fetch("a")
    (found,) = await shared(bench, 1)
    assert (found["group"], found["state"], found["member"]) == ("g", "acquired", "a")
    assert found["since_ms"] == found["events"][0]["at_ms"]
    assert abs(found["lock_until_ms"] - found["since_ms"] - 30_000) < 1_000
    assert await bench.acknowledge("a", (0, 2, ACCEPT, REJECT, RELEASE)) is OK
    await eventually(lambda: bench.node.shared_partitions.dead_letters.written == 1)
    states = [(await shared(bench, offset))[0]["state"] for offset in (0, 2, 3)]
    assert states == ["accepted", "available", "acquired"]
    (found,) = await shared(bench, 1)
    assert found["dead_letter"] == {"topic": "dlq.t", "written": True}
    bench.leave("a")
    (found,) = await shared(bench, 3)
    assert [each["what"] for each in found["events"]] == ["acquired", "member_left"]
    (found,) = await shared(bench, 9)
    assert found["state"] == "not_yet"
    # What is not in memory is read from the share coordinator.
    await eventually(lambda: len(bench.node.shared_partitions) == 0)
    found_there = await shared_facts(["g"], call.topic_id("t"), 0, 2, bench.node)
    assert [(each.start_offset, each.state, each.delivery_count) for each in found_there] == [
        (2, RecordState.AVAILABLE, 1)
    ]
    found_there = await shared_facts(["other"], call.topic_id("t"), 0, 2, bench.node)
    assert [(each.group, each.start_offset) for each in found_there] == [("g", 2), ("other", None)]
