"""Reading and changing the settings of topics and brokers (KIP-133, KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from ottla.cli.client import Connection
from ottla.cli.polling import poll_until
from ottla.cli.rows import column, only_json, row

KINDS: Final = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}
APPLIED_TIMEOUT_S: Final = 2.0
APPLIED_PAUSE_S: Final = 0.05
SOURCES: Final = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG.value: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value: "all brokers",
    ConfigSource.STATIC_BROKER_CONFIG.value: "properties",
    ConfigSource.DEFAULT_CONFIG.value: "default",
}


@row
class Setting:
    """A setting of a topic or a broker. `value` of one that is `sensitive` is None."""

    name: str = column("setting")
    value: str | None = column(cell=lambda each: "(hidden)" if each.sensitive else each.value)
    source: str = column("from")
    read_only: bool = only_json(default=False)
    sensitive: bool = only_json(default=False)


def describe_configs(
    connection: Connection, kind: str, names: Sequence[str], *, alone: bool = False
) -> dict[str, list[Setting]]:
    """All settings of each topic or broker.

    `alone`, for topics: there is no controller; librdkafka would ask only the controller.
    """
    if not names:
        return {}
    if alone:
        return topic_configs_of_any(connection, names)
    resources = [ConfigResource(KINDS[kind], name) for name in names]
    futures = connection.admin.describe_configs(
        resources, request_timeout=connection.answer_timeout_s
    )
    found: dict[str, list[Setting]] = {}
    for resource, future in futures.items():
        entries = connection.wait(future, f"read the settings of {kind} {resource.name!r}")
        found[resource.name] = [
            Setting(
                entry.name,
                entry.value,
                SOURCES.get(entry.source, "unknown"),
                bool(entry.is_read_only),
                bool(entry.is_sensitive),
            )
            for entry in sorted(entries.values(), key=lambda entry: str(entry.name))
        ]
    return found


def topic_configs_of_any(connection: Connection, names: Sequence[str]) -> dict[str, list[Setting]]:
    """Topic settings as known by the first broker that responds. Raises ClientError."""
    # Imported late: only a cluster without a controller is asked in this way.
    from ottla.client.admin.configs import topic_settings

    return {
        name: [
            Setting(
                each.name,
                each.value,
                SOURCES.get(each.source, "unknown"),
                each.is_read_only,
                each.is_sensitive,
            )
            for each in settings
        ]
        for name, settings in topic_settings(connection.client, names).items()
    }


def alter_configs(
    connection: Connection,
    kind: str,
    name: str,
    settings: Mapping[str, str],
    unset: Sequence[str],
) -> None:
    """Set and unset settings in one request, so that all or none take effect."""
    entries = [
        ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        for setting, value in settings.items()
    ] + [
        ConfigEntry(setting, None, incremental_operation=AlterConfigOpType.DELETE)
        for setting in unset
    ]
    resource = ConfigResource(KINDS[kind], name, incremental_configs=entries)
    futures = connection.admin.incremental_alter_configs(
        [resource], request_timeout=connection.answer_timeout_s
    )
    for future in futures.values():
        connection.wait(future, f"change the settings of {kind} {name!r}")
    await_configs(connection, kind, name, settings, unset)


def await_configs(
    connection: Connection,
    kind: str,
    name: str,
    settings: Mapping[str, str],
    unset: Sequence[str],
) -> None:
    """Wait until the broker itself has applied the change: the controller has acknowledged it
    first.
    """

    def own() -> dict[str, str | None]:
        entries = describe_configs(connection, kind, [name])[name]
        return {entry.name: entry.value for entry in entries if entry.source == kind}

    def is_applied(own: Mapping[str, str | None]) -> bool:
        return settings.items() <= own.items() and own.keys().isdisjoint(unset)

    poll_until(own, is_applied, within_s=APPLIED_TIMEOUT_S, pause_s=APPLIED_PAUSE_S)
