"""Settings of topics, groups and brokers: DescribeConfigs (KIP-133, KIP-226),
IncrementalAlterConfigs (KIP-339).

Any broker knows those of topics and groups; those of a broker it knows itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.admin.controller import code_of_each
from ottla.client.admin.partitions import in_chunks
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.patience import poll_until
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

DESCRIBE_CONFIGS: Final = 32
INCREMENTAL_ALTER_CONFIGS: Final = 44
KINDS: Final = {"topic": 2, "broker": 4, "group": 32}
OF_THE_CLUSTER: Final = ("topic", "group")
"""Kinds whose settings the controller changes, and every broker knows."""
SET: Final = 0
DELETE: Final = 1
SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "properties",
    5: "default",
    8: "group",
}
"""ConfigSource of KIP-226."""
MAX_TOPICS: Final = 500
"""Of one request."""
APPLIED_WITHIN_S: Final = 2.0
APPLIED_PAUSE_S: Final = 0.05


class Setting(NamedTuple):
    """One setting. `value` of one that is sensitive is None."""

    name: str
    value: str | None
    source: str
    """One of SOURCES, or "unknown"."""
    is_read_only: bool = False
    is_sensitive: bool = False
    inherited: str | None = None
    """The value that it has if it is unset, or `name=value` of another setting that it has it from;
    None if that is not known, or it is not set."""


def topic_settings(
    client: Client, topics: Sequence[str], only: Sequence[str] | None = None
) -> dict[str, list[Setting]]:
    """All settings of each topic, or `only` some, by name. Raises RefusedError for the first topic
    that is refused.
    """
    return settings_of(client, "topic", topics, only)


def settings_of(
    client: Client, kind: str, names: Sequence[str], only: Sequence[str] | None = None
) -> dict[str, list[Setting]]:
    """All settings of each topic, group or broker (`kind`), or `only` some, by name. Raises
    RefusedError for the first that is refused.
    """
    found: dict[str, list[Setting]] = {}
    for some in in_chunks(names, MAX_TOPICS if kind == "topic" else 1):
        question = _describe(kind, some, only)
        if kind in OF_THE_CLUSTER:
            response = client.ask_any(question)
        else:
            response = client.ask_broker(int(some[0]), question)
        for result in response.results:
            if result.error_code is not ErrorCode.none:
                doing = f"read the settings of {kind} {result.resource_name!r}"
                raise RefusedError(
                    doing,
                    result.error_code,
                    result.error_message,
                    Needs("DescribeConfigs", result.resource_name),
                )
            found[result.resource_name] = [
                Setting(
                    each.name,
                    each.value,
                    SOURCES.get(int(each.config_source), "unknown"),
                    each.read_only,
                    each.is_sensitive,
                    _inherited(each),
                )
                for each in sorted(result.configs, key=lambda each: str(each.name))
            ]
    return found


def _inherited(config: Any) -> str | None:
    """The second of its synonyms (KIP-226), which are in the order in which they count: its value,
    or `name=value` where the name, and so perhaps the unit, is another.
    """
    others = getattr(config, "synonyms", ())[1:]
    if not others or others[0].value is None:
        return None
    name, value = others[0].name, others[0].value
    is_same = name in (config.name, f"log.{config.name}")
    return value if is_same else f"{name}={value}"


def _describe(kind: str, names: Sequence[str], only: Sequence[str] | None) -> Question:
    def build(messages: Messages) -> Any:
        resources = tuple(
            messages.DescribeConfigsResource(
                resource_type=KINDS[kind],
                resource_name=name,
                configuration_keys=None if only is None else tuple(only),
            )
            for name in names
        )
        return messages.DescribeConfigsRequest(resources=resources, include_synonyms=True)

    return Question(DESCRIBE_CONFIGS, 4, build, 1)


def alter_settings(
    client: Client, kind: str, name: str, settings: Mapping[str, str], unset: Sequence[str]
) -> None:
    """Sets and unsets settings in one request, so that all or none take effect; and waits until the
    broker itself has applied them, as the controller responds first. Raises RefusedError.
    """
    changes: list[tuple[str, int, str | None]] = [
        (setting, SET, value) for setting, value in settings.items()
    ]
    changes += [(setting, DELETE, None) for setting in unset]

    def build(messages: Messages) -> Any:
        resource = messages.AlterConfigsResource(
            resource_type=KINDS[kind],
            resource_name=name,
            configs=tuple(
                messages.AlterableConfig(name=setting, config_operation=operation, value=value)
                for setting, operation, value in changes
            ),
        )
        return messages.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

    question, doing = (
        Question(INCREMENTAL_ALTER_CONFIGS, 1, build, since="2.3"),
        f"change the settings of {kind} {name!r}",
    )
    if kind in OF_THE_CLUSTER:
        response = client.ask_controller(question, doing, code_of_each("responses"))
    else:
        response = client.ask_broker(int(name), question)
    for each in response.responses:
        if each.error_code is not ErrorCode.none:
            raise RefusedError(
                doing, each.error_code, each.error_message, Needs("AlterConfigs", name)
            )

    def own() -> dict[str, str | None]:
        found = settings_of(client, kind, [name])[name]
        return {each.name: each.value for each in found if each.source == kind}

    def is_applied(own: Mapping[str, str | None]) -> bool:
        return settings.items() <= own.items() and own.keys().isdisjoint(unset)

    poll_until(
        own,
        is_applied,
        within_s=APPLIED_WITHIN_S,
        pause_s=APPLIED_PAUSE_S,
        patience=client.patience,
    )
