"""The settings of topics from any broker."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.client.admin.configs import DESCRIBE_CONFIGS, KINDS, Setting, topic_settings
from ottla.client.errors import RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


def cluster(code: ErrorCode) -> FakeCluster:
    def answer(address: str, request: Any) -> Any:
        (resource,) = request.resources
        assert (resource.resource_type, resource.resource_name) == (KINDS["topic"], "t")
        build = messages_of(DESCRIBE_CONFIGS, request.__version__)
        entries = tuple(
            build.DescribeConfigsResourceResult(
                name=name, value="1", read_only=False, config_source=5, is_sensitive=False
            )
            for name in ("retention.ms", "cleanup.policy")
        )
        result = build.DescribeConfigsResult(
            error_code=code,
            error_message=None,
            resource_type=KINDS["topic"],
            resource_name="t",
            configs=entries if code is ErrorCode.none else (),
        )
        return build.DescribeConfigsResponse(results=(result,))

    return FakeCluster({DESCRIBE_CONFIGS: [answer]})


def test_settings_by_name() -> None:
    assert topic_settings(cluster(ErrorCode.none).client(), ["t"]) == {
        "t": [
            Setting("cleanup.policy", "1", "default"),
            Setting("retention.ms", "1", "default"),
        ]
    }


def test_a_topic_that_is_refused() -> None:
    refusing = cluster(ErrorCode.unknown_topic_or_partition)
    with pytest.raises(RefusedError, match="cannot read the settings of topic 't': unknown topic"):
        topic_settings(refusing.client(), ["t"])
