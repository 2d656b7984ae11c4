from typing import Any

from ottla.controller.config_changes import ResourceType
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 74


async def listed(cluster: Any, version: int, *kinds: int) -> Any:
    build = cluster.request(KEY, version)
    return await cluster.ask(build.ListConfigResourcesRequest(resource_types=kinds))


async def test_lists_topics_and_brokers(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    answer = await listed(cluster, 1)
    found = {(each.resource_type, each.resource_name) for each in answer.config_resources}
    assert found == {(ResourceType.TOPIC, "t"), (ResourceType.BROKER, "1")}
    answer = await listed(cluster, 1, ResourceType.TOPIC)
    assert [each.resource_name for each in answer.config_resources] == ["t"]


async def test_version_0_knows_only_client_metrics(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    answer = await listed(cluster, 0)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.none, ())


async def test_an_unknown_type_is_refused(cluster: Any) -> None:
    answer = await listed(cluster, 1, ResourceType.TOPIC, 77)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.unsupported_version, ())
