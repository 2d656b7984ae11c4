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


async def test_describes_a_group_that_need_not_exist(start_cluster: Any) -> None:
    cluster = await start_cluster(group_consumer_session_timeout_ms="50000")
    build = cluster.request(44, 1)
    change = build.AlterableConfig(
        name="consumer.heartbeat.interval.ms", config_operation=0, value=" 6000"
    )
    resource = build.AlterConfigsResource(
        resource_type=ResourceType.GROUP, resource_name="g", configs=(change,)
    )
    await cluster.ask(build.IncrementalAlterConfigsRequest(resources=(resource,)))
    result = await describe(cluster, ResourceType.GROUP, "g", include_synonyms=True)
    configs = {each.name: each for each in result.configs}
    assert len(configs) == 21
    own = configs["consumer.heartbeat.interval.ms"]
    assert (own.value, own.config_source, own.read_only, own.config_type) == ("6000", 8, False, 3)
    assert [(each.name, each.value, each.source) for each in own.synonyms] == [
        ("consumer.heartbeat.interval.ms", " 6000", 8),
        ("group.consumer.heartbeat.interval.ms", "5000", 5),
    ]
    static = configs["consumer.session.timeout.ms"]
    assert (static.value, static.config_source) == ("50000", 4)
    without = configs["share.auto.offset.reset"]
    assert (without.value, without.config_source) == ("latest", 5)
    assert [(each.name, each.source) for each in without.synonyms] == [
        ("share.auto.offset.reset", 5)
    ]
    # Kafka does not show this one either, unless it is set.
    change = build.AlterableConfig(
        name="streams.acceptable.recovery.lag", config_operation=0, value="5"
    )
    resource = build.AlterConfigsResource(
        resource_type=ResourceType.GROUP, resource_name="g", configs=(change,)
    )
    await cluster.ask(build.IncrementalAlterConfigsRequest(resources=(resource,)))
    names = [each.name for each in (await describe(cluster, ResourceType.GROUP, "g")).configs]
    assert (len(names), change.name in names) == (22, True)
    other = await describe(cluster, ResourceType.GROUP, "h")
    assert {each.config_source for each in other.configs} == {4, 5}
    nameless = await describe(cluster, ResourceType.GROUP, "")
    assert (nameless.error_code, nameless.error_message) == (
        ErrorCode.invalid_request,
        "Group name must not be empty",
    )
    build = cluster.request(74, 1)
    kinds = (ResourceType.GROUP,)
    answer = await cluster.ask(build.ListConfigResourcesRequest(resource_types=kinds))
    assert [each.resource_name for each in answer.config_resources] == ["g"]
