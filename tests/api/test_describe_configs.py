from typing import Any

import pytest

from ottla.controller.config_changes import ResourceType
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 32


async def describe(
    cluster: Any,
    kind: int,
    name: str,
    *,
    version: int = 4,
    keys: tuple[str, ...] | None = None,
    **more: Any,
) -> Any:
    build = cluster.request(KEY, version)
    resource = build.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = build.DescribeConfigsRequest(resources=(resource,), **more)
    (result,) = (await cluster.ask(request)).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


@pytest.mark.parametrize("version", range(1, 5))
async def test_every_version_describes_a_topic(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 1, 1, configs=(("retention.ms", "5"),)))
    result = await describe(
        cluster,
        ResourceType.TOPIC,
        "t",
        version=version,
        include_synonyms=True,
        include_documentation=True,
    )
    configs = {each.name: each for each in result.configs}
    own = configs["retention.ms"]
    assert (own.value, own.config_source, own.read_only) == ("5", 1, False)
    assert [(each.name, each.source) for each in own.synonyms] == [
        ("retention.ms", 1),
        ("log.retention.hours", 5),
    ]
    assert configs["cleanup.policy"].config_source == 5
    if version >= 3:
        assert (own.config_type, configs["cleanup.policy"].config_type) == (5, 7)
        assert "deleted" in own.documentation


async def test_synonyms_and_documentation_are_returned_on_request(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    result = await describe(cluster, ResourceType.TOPIC, "t", keys=("retention.ms",))
    (config,) = result.configs
    assert (config.synonyms, config.documentation) == ((), None)


async def test_describes_the_broker_and_all_brokers(start_cluster: Any) -> None:
    cluster = await start_cluster(num_partitions="4")
    result = await describe(cluster, ResourceType.BROKER, "1")
    configs = {each.name: each for each in result.configs}
    static = configs["num.partitions"]
    assert (static.value, static.config_source, static.read_only) == ("4", 4, True)
    assert not configs["log.retention.ms"].read_only
    assert (await describe(cluster, ResourceType.BROKER, "")).configs == ()
    build = cluster.request(44, 1)
    change = build.AlterableConfig(name="log.retention.ms", config_operation=0, value="5")
    resource = build.AlterConfigsResource(
        resource_type=ResourceType.BROKER, resource_name="", configs=(change,)
    )
    await cluster.ask(build.IncrementalAlterConfigsRequest(resources=(resource,)))
    (config,) = (await describe(cluster, ResourceType.BROKER, "")).configs
    assert (config.name, config.value, config.config_source) == ("log.retention.ms", "5", 3)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (ResourceType.TOPIC, "none", ErrorCode.unknown_topic_or_partition, "does not host"),
        (ResourceType.TOPIC, "a b", ErrorCode.invalid_topic_exception, "Topic name is invalid"),
        (ResourceType.BROKER, "x", ErrorCode.invalid_request, "Broker id must be an integer"),
        (ResourceType.BROKER, "7", ErrorCode.invalid_request, "Unexpected broker id, expected 1"),
        (ResourceType.CLIENT_METRICS, "m", ErrorCode.invalid_request, "Unsupported resource type"),
        (99, "m", ErrorCode.invalid_request, "Unsupported resource type"),
    ],
)
async def test_refuses(cluster: Any, kind: int, name: str, code: ErrorCode, message: str) -> None:
    result = await describe(cluster, kind, name)
    assert result.error_code is code
    assert message in result.error_message
    assert result.configs == ()
