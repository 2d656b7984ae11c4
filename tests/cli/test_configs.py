"""Settings of topics from any broker, for a cluster without a controller."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cli import cluster_client
from ottla.cli.client import Connection
from ottla.cli.configs import DESCRIBE_CONFIGS, describe_configs
from ottla.cli.failures import Failed
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

ALONE = Connection("h:1", {}, None, 1.0)


def answer(code: ErrorCode = ErrorCode.none, message: str | None = None) -> Any:
    build = messages_of(DESCRIBE_CONFIGS, 1)
    entries = tuple(
        build.DescribeConfigsResourceResult(
            name=name,
            value=value,
            read_only=False,
            config_source=source,
            is_sensitive=False,
            synonyms=(),
        )
        for name, value, source in (("retention.ms", "5", 1), ("cleanup.policy", "delete", 5))
    )
    result = build.DescribeConfigsResult(
        error_code=code, error_message=message, resource_type=2, resource_name="t", configs=entries
    )
    return build.DescribeConfigsResponse(results=(result,))


def test_settings_match_the_controllers_response(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(bootstrap: str, request: Any) -> Any:
        asked.append(request)
        return answer()

    monkeypatch.setattr(cluster_client, "ask", ask)
    found = describe_configs(ALONE, "topic", ["t"], alone=True)
    (request,) = asked
    assert [(each.resource_type, each.resource_name) for each in request.resources] == [(2, "t")]
    assert [(each["name"], each["value"], each["source"]) for each in found["t"]] == [
        ("cleanup.policy", "delete", "default"),
        ("retention.ms", "5", "topic"),
    ]
    assert describe_configs(ALONE, "topic", [], alone=True) == {}


def test_a_refusal_names_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = answer(ErrorCode.unknown_topic_or_partition)
    monkeypatch.setattr(cluster_client, "ask", lambda bootstrap, request: refused)
    with pytest.raises(Failed, match="cannot read the settings of topic 't': unknown topic"):
        describe_configs(ALONE, "topic", ["t"], alone=True)
