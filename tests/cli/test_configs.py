"""Settings of topics from any broker, for a cluster without a controller."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.client.fake_cluster import FakeCluster

from ottla.cli.configs import describe_configs
from ottla.client.admin.configs import DESCRIBE_CONFIGS
from ottla.protocol.messages import messages_of


def settings(address: str, request: Any) -> Any:
    build = messages_of(DESCRIBE_CONFIGS, request.__version__)
    entries = tuple(
        build.DescribeConfigsResourceResult(
            name=name, value=value, read_only=False, config_source=source, is_sensitive=False
        )
        for name, value, source in (("retention.ms", "5", 1), ("cleanup.policy", "delete", 5))
    )
    result = build.DescribeConfigsResult(
        error_message=None, resource_type=2, resource_name="t", configs=entries
    )
    return build.DescribeConfigsResponse(results=(result,))


def test_settings_match_the_controllers_response() -> None:
    cluster = FakeCluster({DESCRIBE_CONFIGS: [settings]})
    connection: Any = SimpleNamespace(client=cluster.client())
    found = describe_configs(connection, "topic", ["t"], alone=True)
    assert [(each.name, each.value, each.source) for each in found["t"]] == [
        ("cleanup.policy", "delete", "default"),
        ("retention.ms", "5", "topic"),
    ]
    assert describe_configs(connection, "topic", [], alone=True) == {}
    assert len(cluster.requests(DESCRIBE_CONFIGS)) == 1
