"""Others are answered between the steps of a long request."""

from typing import Any

import pytest
from tests.api.long_admin_requests import REQUESTS

from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

MOST_CALLS = 50_000
"""At most 10 ms; see `tests.turns`. Decided and answered at once, each of these requests makes
several times as many.
"""


@pytest.mark.parametrize("make", REQUESTS, ids=lambda make: make.__name__)
async def test_others_are_answered_meanwhile(node_call: Any, make: Any) -> None:
    node_call.counts_calls = True
    await node_call.ask(make(node_call))
    assert node_call.most_calls <= MOST_CALLS


async def test_one_topic_gets_thousands_of_partitions_in_steps(node_call: Any) -> None:
    build = node_call.request(37, 3)
    topics = (build.CreatePartitionsTopic(name="t", count=9_000),)
    asked = build.CreatePartitionsRequest(topics=topics, timeout=60_000, validate_only=False)
    node_call.counts_calls = True
    await node_call.ask(asked)
    assert len(node_call.node.partitions.of_topic("t")) == 9_000
    assert node_call.most_calls <= 2 * MOST_CALLS


async def test_topics_are_deleted_in_steps(node_call: Any) -> None:
    created = await node_call.node.controller.create_topics(
        [NewTopic(f"t{i}", 1, 1) for i in range(2_000)]
    )
    assert not any(each.outcome.failed for each in created)
    build = node_call.request(20, 6)
    topics = tuple(build.DeleteTopicState(name=f"t{i}") for i in range(2_000))
    node_call.counts_calls = True
    answer = await node_call.ask(build.DeleteTopicsRequest(topics=topics, timeout=1000))
    assert {each.error_code for each in answer.responses} == {ErrorCode.none}
    assert not any(name.startswith("t") and name != "t" for name in node_call.node.image.topics)
    assert node_call.most_calls <= MOST_CALLS
