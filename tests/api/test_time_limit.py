from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37


def asked(node_call: Any, key: int, timeout: int) -> Any:
    build = node_call.request(key, {CREATE_TOPICS: 7, DELETE_TOPICS: 6, CREATE_PARTITIONS: 3}[key])
    if key == CREATE_TOPICS:
        topics = (build.CreatableTopic(name="u", num_partitions=1, replication_factor=1),)
        return build.CreateTopicsRequest(topics=topics, timeout=timeout)
    if key == DELETE_TOPICS:
        return build.DeleteTopicsRequest(
            topics=(build.DeleteTopicState(name="t"),), timeout=timeout
        )
    topics = (build.CreatePartitionsTopic(name="t", count=3),)
    return build.CreatePartitionsRequest(topics=topics, timeout=timeout)


@pytest.mark.parametrize("timeout", [0, -1])
@pytest.mark.parametrize("key", [CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS])
async def test_without_any_time_nothing_is_changed(node_call: Any, key: int, timeout: int) -> None:
    topics = node_call.node.image.topics
    before = {name: len(topic.partitions) for name, topic in topics.items()}
    answer = await node_call.ask(asked(node_call, key, timeout))
    (result,) = (
        getattr(answer, "topics", None) or getattr(answer, "responses", None) or answer.results
    )
    assert (result.error_code, result.error_message) == (ErrorCode.request_timed_out, None)
    assert {name: len(topic.partitions) for name, topic in topics.items()} == before
