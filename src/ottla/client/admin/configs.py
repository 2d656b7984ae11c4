"""Settings of topics as any broker knows them: DescribeConfigs (KIP-133, KIP-226).

librdkafka asks only the controller, and so fails without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

DESCRIBE_CONFIGS: Final = 32
TOPIC: Final = 2


class Setting(NamedTuple):
    """One setting."""

    name: str
    value: str | None
    source: int
    """ConfigSource of KIP-226."""
    is_read_only: bool
    is_sensitive: bool


def topic_settings(client: Client, topics: Sequence[str]) -> dict[str, list[Setting]]:
    """All settings of each topic, by name. Raises RefusedError for the first topic that is
    refused.
    """

    def build(messages: Messages) -> Any:
        resources = tuple(
            messages.DescribeConfigsResource(resource_type=TOPIC, resource_name=name)
            for name in topics
        )
        return messages.DescribeConfigsRequest(resources=resources)

    response = client.ask_any(Question(DESCRIBE_CONFIGS, 4, build, 1))
    found: dict[str, list[Setting]] = {}
    for result in response.results:
        if result.error_code is not ErrorCode.none:
            doing = f"read the settings of topic {result.resource_name!r}"
            raise RefusedError(doing, result.error_code, result.error_message)
        found[result.resource_name] = [
            Setting(each.name, each.value, each.config_source, each.read_only, each.is_sensitive)
            for each in sorted(result.configs, key=lambda each: str(each.name))
        ]
    return found
