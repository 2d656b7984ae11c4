from typing import Any

import pytest

from ottla.controller.config_changes import ChangeKind, ResourceType
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 44
SET, DELETE, APPEND, SUBTRACT = ChangeKind


def request(
    cluster: Any,
    version: int,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    **more: Any,
) -> Any:
    build = cluster.request(KEY, version)
    resource = build.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            build.AlterableConfig(name=each, config_operation=operation, value=value)
            for each, operation, value in changes
        ),
    )
    return build.IncrementalAlterConfigsRequest(resources=(resource,), **more)


@pytest.mark.parametrize("version", range(2))
async def test_every_version_changes_single_settings(cluster: Any, version: int) -> None:
    await cluster.create(NewTopic("t", 1, 1, configs=(("retention.ms", "5"),)))
    changes = [
        ("segment.ms", SET, "7"),
        ("retention.ms", DELETE, None),
        ("cleanup.policy", APPEND, "compact"),
    ]
    answer = await cluster.ask(request(cluster, version, ResourceType.TOPIC, "t", *changes))
    assert answer.responses[0].error_code is ErrorCode.none
    assert cluster.image.topics["t"].overrides == {
        "segment.ms": "7",
        "cleanup.policy": "delete,compact",
    }


async def test_a_broker_setting_takes_effect(cluster: Any) -> None:
    change = ("message.max.bytes", SET, "4000")
    answer = await cluster.ask(request(cluster, 1, ResourceType.BROKER, "1", change))
    assert answer.responses[0].error_code is ErrorCode.none
    assert cluster.config.message_max_bytes == 4000
    change = ("message.max.bytes", SUBTRACT, "1")
    answer = await cluster.ask(request(cluster, 1, ResourceType.BROKER, "1", change))
    assert answer.responses[0].error_code is ErrorCode.invalid_config
    change = ("num.partitions", SET, "1")
    answer = await cluster.ask(
        request(cluster, 1, ResourceType.BROKER, "1", change, validate_only=True)
    )
    assert answer.responses[0].error_code is ErrorCode.invalid_request
    assert "Cannot update these configs dynamically" in answer.responses[0].error_message


async def test_settings_that_cannot_be_in_force_change_nothing(cluster: Any) -> None:
    """As a broker refuses them in its own file."""
    for resource in ("1", ""):
        for name, said in (
            ("log.retention.ms", "Value must be unlimited (-1) or at least 1"),
            ("max.connections.per.ip", "only if max.connections.per.ip.overrides property is set"),
        ):
            asked = request(cluster, 1, ResourceType.BROKER, resource, (name, SET, "0"))
            (answer,) = (await cluster.ask(asked)).responses
            assert answer.error_code is ErrorCode.invalid_request
            assert said in answer.error_message
    changes = ("max.connections.per.ip", SET, "0"), ("max.connections.per.ip.overrides", SET, "h:5")
    answer = await cluster.ask(request(cluster, 1, ResourceType.BROKER, "", *changes))
    assert answer.responses[0].error_code is ErrorCode.none
    assert cluster.config.max_connections_per_ip == 0
