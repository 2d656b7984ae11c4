from typing import Any

import pytest

from ottla.controller.config_changes import ResourceType
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 33


def request(cluster: Any, version: int, name: str, *configs: tuple[str, str], **more: Any) -> Any:
    build = cluster.request(KEY, version)
    resource = build.AlterConfigsResource(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        configs=tuple(build.AlterableConfig(name=each, value=value) for each, value in configs),
    )
    return build.AlterConfigsRequest(resources=(resource,), **more)


@pytest.mark.parametrize("version", range(3))
async def test_every_version_replaces_all_settings(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 1, 1, configs=(("retention.ms", "5"),)))
    answer = await cluster.ask(request(cluster, version, "t", ("segment.ms", "7")))
    (result,) = answer.responses
    assert (result.error_code, result.error_message) == (ErrorCode.none, None)
    assert (result.resource_type, result.resource_name) == (ResourceType.TOPIC, "t")
    assert cluster.image.topics["t"].overrides == {"segment.ms": "7"}


async def test_validate_only_and_refusals_change_nothing(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    answer = await cluster.ask(request(cluster, 2, "t", ("segment.ms", "7"), validate_only=True))
    assert answer.responses[0].error_code is ErrorCode.none
    answer = await cluster.ask(request(cluster, 2, "t", ("segment.ms", "soon")))
    assert answer.responses[0].error_code is ErrorCode.invalid_config
    assert "Not a number of type LONG" in answer.responses[0].error_message
    assert cluster.image.topics["t"].overrides == {}


async def test_a_fault_of_the_whole_request_is_told_for_each_resource(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 1, 1))
    await cluster.node.membership.session.set("/controller_epoch", b"99")
    answer = await cluster.ask(request(cluster, 2, "t", ("segment.ms", "7")))
    assert answer.responses[0].error_code is ErrorCode.not_controller
