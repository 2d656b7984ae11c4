"""Describing settings: value, source, synonyms, type, documentation (KIP-226, KIP-569).

A setting of a topic, group or broker can have values from several sources. The synonyms list every
source that has one, the effective one first.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.config.broker import DYNAMIC_NAMES, BrokerConfig
from ottla.config.error import ConfigError
from ottla.config.group import GroupConfig
from ottla.config.group_bounds import GROUP_BOUNDS, ONLY_VALUES
from ottla.config.inert import INERT
from ottla.config.listener_security import (
    DYNAMIC_LIMITS,
    DYNAMIC_STORES,
    ListenerSecurity,
    is_of_listener,
    without_listener,
)
from ottla.config.setting import Setting
from ottla.config.synonym import BROKER_SYNONYMS, SYNONYMS
from ottla.config.topic import TopicConfig
from ottla.config.unneeded import unneeded_reason
from ottla.config.value import ConfigType, value_text


class Source(enum.IntEnum):
    """Where a value comes from, as numbered in DescribeConfigs responses."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One value that a setting has, and its source."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as it is now."""

    name: str
    value: str | None
    """None if the setting has no value, and always None if it is sensitive."""
    source: Source
    read_only: bool
    sensitive: bool
    kind: ConfigType
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...]


def topic_entries(
    overrides: Mapping[str, str], broker: BrokerConfig, keys: Sequence[str] | None = None
) -> tuple[ConfigEntry, ...]:
    """Every setting of a topic with these `overrides`; `keys` selects some by name."""
    entries: list[ConfigEntry] = []
    for name in _chosen(TopicConfig.definitions, keys):
        definition = TopicConfig.definitions[name]
        if definition.internal and name not in overrides:
            continue
        synonyms: list[ConfigSynonym] = []
        if name in overrides:
            synonyms.append(ConfigSynonym(name, overrides[name], Source.TOPIC))
        for synonym in SYNONYMS.get(name, ()):
            synonyms += _values_set(synonym.name, broker)
        synonyms.sort(key=lambda each: each.source)
        entries.append(
            ConfigEntry(
                name=name,
                value=_topic_value(name, overrides, broker, definition),
                source=synonyms[0].source if synonyms else Source.DEFAULT,
                read_only=False,
                sensitive=definition.sensitive,
                kind=definition.kind,
                documentation=definition.documentation,
                synonyms=tuple(synonyms),
            )
        )
    return tuple(entries)


def group_entries(
    overrides: Mapping[str, str], broker: BrokerConfig, keys: Sequence[str] | None = None
) -> tuple[ConfigEntry, ...]:
    """Every setting of a group with these `overrides`, as they are stored; `keys` selects some.

    As in ConfigHelper.createGroupConfigEntry. What is in force may be nearer to the broker's
    bounds: see `GroupConfig.stored`.
    """
    entries: list[ConfigEntry] = []
    for name in _chosen(GroupConfig.definitions, keys):
        definition = GroupConfig.definitions[name]
        if definition.internal and name not in overrides:
            continue
        bounds = GROUP_BOUNDS.get(name)
        if bounds is None:
            of_broker, default = ONLY_VALUES.get(name, (name, definition.default_text))
            synonyms = [ConfigSynonym(of_broker, default, Source.DEFAULT)]
        else:
            default = broker.text(bounds.default)
            synonyms = sorted(_values_set(bounds.default, broker), key=lambda each: each.source)
        if name in overrides:
            synonyms.insert(0, ConfigSynonym(name, overrides[name], Source.GROUP))
        entries.append(
            ConfigEntry(
                name=name,
                value=_normal(definition, overrides[name]) if name in overrides else default,
                source=synonyms[0].source,
                read_only=False,
                sensitive=definition.sensitive,
                kind=definition.kind,
                documentation=definition.documentation,
                synonyms=tuple(synonyms),
            )
        )
    return tuple(entries)


def broker_entries(
    broker: BrokerConfig, keys: Sequence[str] | None = None
) -> tuple[ConfigEntry, ...]:
    """Every setting in force on this broker, and the dynamic ones that have no effect."""
    entries: list[ConfigEntry] = []
    for name in _chosen(BrokerConfig.definitions, keys):
        definition = BrokerConfig.definitions[name]
        if definition.internal and name not in broker.given:
            continue
        synonyms: list[ConfigSynonym] = []
        for other in BROKER_SYNONYMS.get(name, (name,)):
            synonyms += _values_set(other, broker)
        synonyms.sort(key=lambda each: each.source)
        # A setting of another name that overrides this one is not the source of its value.
        while synonyms and synonyms[0].name != name:
            synonyms.pop(0)
        entries.append(
            ConfigEntry(
                name=name,
                value=None if definition.sensitive else broker.text(name),
                source=synonyms[0].source if synonyms else Source.DEFAULT,
                read_only=name not in DYNAMIC_NAMES,
                sensitive=definition.sensitive,
                kind=definition.kind,
                documentation=definition.documentation,
                synonyms=tuple(synonyms),
            )
        )
    for layer, source in (
        (broker.broker_dynamic, Source.DYNAMIC_BROKER),
        (broker.cluster_dynamic, Source.DYNAMIC_DEFAULT_BROKER),
    ):
        shown = {entry.name for entry in entries}
        others = [
            name for name in layer if name not in BrokerConfig.definitions and name not in shown
        ]
        entries += [_stored_entry(name, layer[name], source) for name in _chosen(others, keys)]
    shown = {entry.name for entry in entries}
    others = [
        name for name in broker.given if name not in BrokerConfig.definitions and name not in shown
    ]
    for name in _chosen(others, keys):
        own = _of_listener(name, broker.given[name], Source.STATIC_BROKER)
        entries.append(own or _unneeded_entry(name))
    return tuple(entries)


def cluster_entries(
    values: Mapping[str, str], keys: Sequence[str] | None = None
) -> tuple[ConfigEntry, ...]:
    """The dynamic defaults of all brokers: only those that are set."""
    entries: list[ConfigEntry] = []
    for name in _chosen(values, keys):
        if name not in BrokerConfig.definitions:
            entries.append(_stored_entry(name, values[name], Source.DYNAMIC_DEFAULT_BROKER))
            continue
        definition = BrokerConfig.definitions[name]
        shown = None if definition.sensitive else values[name]
        synonym = ConfigSynonym(name, shown, Source.DYNAMIC_DEFAULT_BROKER)
        entries.append(
            ConfigEntry(
                name=name,
                value=shown,
                source=Source.DYNAMIC_DEFAULT_BROKER,
                read_only=False,
                sensitive=definition.sensitive,
                kind=definition.kind,
                documentation=definition.documentation,
                synonyms=(synonym,),
            )
        )
    return tuple(entries)


def _chosen(names: Iterable[str], keys: Sequence[str] | None) -> list[str]:
    if not keys:
        return list(names)
    wanted = set(keys)
    return [name for name in names if name in wanted]


def _values_set(name: str, broker: BrokerConfig) -> list[ConfigSynonym]:
    """Every value that one broker setting has, with its source."""
    definition = BrokerConfig.definitions[name]
    layers = (
        (broker.broker_dynamic, Source.DYNAMIC_BROKER),
        (broker.cluster_dynamic, Source.DYNAMIC_DEFAULT_BROKER),
        (broker.given, Source.STATIC_BROKER),
    )
    found = [
        ConfigSynonym(name, None if definition.sensitive else layer[name], source)
        for layer, source in layers
        if name in layer
    ]
    default = definition.default_text
    if default is not None:
        found.append(ConfigSynonym(name, None if definition.sensitive else default, Source.DEFAULT))
    return found


def _topic_value(
    name: str, overrides: Mapping[str, str], broker: BrokerConfig, definition: Setting[Any]
) -> str | None:
    text = overrides.get(name)
    if text is not None:
        return _normal(definition, text)
    for synonym in SYNONYMS.get(name, ()):
        converted = synonym.convert(broker.value(synonym.name))
        if converted is not None:
            return converted
    return definition.default_text


def _normal(definition: Setting[Any], text: str) -> str | None:
    """A stored value as Kafka shows it; one that is not valid (`TopicConfig.stored`) as it is."""
    try:
        return value_text(definition.parse(text))
    except ConfigError:
        return text


def _stored_entry(name: str, text: str, source: Source) -> ConfigEntry:
    """A dynamic setting that has no effect, or an unknown one. The latter is sensitive, as it may
    be a plugin's password (ConfigHelper).

    Its only synonym is the source where it was set.
    """
    own = _of_listener(name, text, source)
    if own is not None:
        return own
    inert, reason = INERT.get(name), unneeded_reason(name)
    value = None if inert is None else text
    return ConfigEntry(
        name=name,
        value=value,
        source=source,
        read_only=inert is None,
        sensitive=inert is None,
        kind=ConfigType.UNKNOWN if inert is None else inert.kind,
        documentation=None if reason is None else f"No effect: {reason}.",
        synonyms=(ConfigSynonym(name, value, source),),
    )


def _of_listener(name: str, text: str, source: Source) -> ConfigEntry | None:
    """A setting of one listener; None if it is not, or belongs to a mechanism of SASL."""
    setting = without_listener(name)
    definition = ListenerSecurity.definitions.get(setting)
    if definition is None or not is_of_listener(name):
        return None
    value = None if definition.sensitive else text
    return ConfigEntry(
        name=name,
        value=value,
        source=source,
        read_only=setting not in DYNAMIC_STORES | DYNAMIC_LIMITS,
        sensitive=definition.sensitive,
        kind=definition.kind,
        documentation=definition.documentation,
        synonyms=(ConfigSynonym(name, value, source),),
    )


def _unneeded_entry(name: str) -> ConfigEntry:
    # A setting that has no meaning here may still be a password.
    return ConfigEntry(
        name=name,
        value=None,
        source=Source.STATIC_BROKER,
        read_only=True,
        sensitive=True,
        kind=ConfigType.STRING,
        documentation=f"No effect: {unneeded_reason(name)}.",
        synonyms=(),
    )
