"""Changing settings at run time: AlterConfigs and IncrementalAlterConfigs (KIP-226, KIP-339).

A resource is a topic, a group, a broker (its number), or all brokers (EVERY_BROKER). The changes
to one resource are applied all or none; a failure of another resource does not affect them.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ottla.config.broker import BrokerConfig, check_dynamic, is_known
from ottla.config.error import ConfigError
from ottla.config.group import GroupConfig, check_group_overrides
from ottla.config.setting import Setting
from ottla.config.synonym import topic_defaults
from ottla.config.topic import TopicConfig, check_topic_overrides
from ottla.config.value import ConfigType
from ottla.controller import layout
from ottla.controller.image import (
    EVERY_BROKER,
    NO_CONFIG,
    NO_LEADER,
    BrokerConfigChanged,
    ClusterImage,
    ConfigImage,
    GroupConfigChanged,
    TopicConfigChanged,
)
from ottla.controller.leadership import all_brokers, unclean_allowed, with_leader
from ottla.controller.naming import check_topic_name
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import DONE, Outcome, PlanBuilder, Step, Steps, refused
from ottla.coordination.tree import Create, Delete, Operation, SetData
from ottla.protocol.errors import ApiError, ErrorCode

VALUE_LENGTH_MAX: Final = 32_767
SETTINGS_BYTES_MAX: Final = 250_000
"""The largest node with the settings of one resource. Unknown names are accepted, and ZooKeeper
refuses a node of more than 1 MB; every broker has all settings in memory."""


MAX_CHANGES: Final = 1_000
"""Of one resource in one request. Kafka has no limit. A topic or broker has fewer settings, and the
changes to one resource are checked together: a million of them would take seconds.
"""
MAX_GROUPS: Final = 10_000
"""That have settings of their own, whether they exist or not. Kafka has no limit; every broker has
all settings in memory.
"""
MAX_GROUP_CHARACTERS: Final = 1_000
"""Of the name of such a group; it is the name of a node, and in every broker's memory."""
RESOURCE_US: Final = 200
CHANGE_US: Final = 10
"""What checking the changes of one resource costs, and each of them."""


class ResourceType(enum.IntEnum):
    """What can have settings, as numbered in the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ChangeKind(enum.IntEnum):
    """What to do with a setting, as numbered in IncrementalAlterConfigs requests."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One change to a setting; `kind` may be an unknown number."""

    name: str
    value: str | None
    kind: int = ChangeKind.SET


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """The changes to one resource."""

    kind: int
    name: str
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True)
class ResourceResult:
    """The outcome for one resource."""

    kind: int
    name: str
    outcome: Outcome


def alter_configs(
    wanted: Sequence[ResourceChange],
    image: ClusterImage,
    config: BrokerConfig,
    *,
    incremental: bool,
    validate_only: bool = False,
    shutting_down: Collection[int] = (),
) -> Steps[tuple[ResourceResult, ...]]:
    """Apply the valid changes; unless `incremental`, settings that are not named are removed."""
    builder, step = PlanBuilder(), Step()
    results: list[ResourceResult] = []
    counts: dict[tuple[int, str], int] = {}
    for resource in wanted:
        if step.is_full(1):
            yield
        key = resource.kind, resource.name
        counts[key] = counts.get(key, 0) + 1
    defaults = topic_defaults(config)
    for resource in wanted:
        if step.is_full(RESOURCE_US + CHANGE_US * min(len(resource.changes), MAX_CHANGES)):
            yield
        outcome = DONE
        try:
            if counts[resource.kind, resource.name] > 1:
                raise _bad_request("Each resource must appear at most once.")
            _check_changes(resource.changes)
            if resource.kind == ResourceType.TOPIC:
                _alter_topic(builder, resource, image, defaults, incremental)
            elif resource.kind == ResourceType.BROKER:
                _alter_broker(builder, resource, image, config, incremental)
            elif resource.kind == ResourceType.GROUP:
                _alter_group(builder, resource, image, config, incremental)
            else:
                raise _bad_request(f"Unknown resource type {resource.kind}")
        except ApiError as error:
            outcome = refused(error)
        except ConfigError as error:
            # Kafka answers an invalid broker setting with INVALID_REQUEST (KAFKA-13609).
            of_broker = resource.kind == ResourceType.BROKER
            code = ErrorCode.invalid_request if of_broker else ErrorCode.invalid_config
            outcome = Outcome(code, str(error))
        results.append(ResourceResult(resource.kind, resource.name, outcome))
    yield from _elect_unclean(builder, image, config, shutting_down)
    return builder.plan(tuple(results), validate_only=validate_only)


def _check_changes(changes: Sequence[ConfigChange]) -> None:
    if len(changes) > MAX_CHANGES:
        raise _bad_request(f"At most {MAX_CHANGES} settings of a resource can be changed at once.")
    if len({change.name for change in changes}) != len(changes):
        raise _bad_request("Error due to duplicate config keys")
    empty = [
        change.name
        for change in changes
        if change.value is None and change.kind != ChangeKind.DELETE
    ]
    if empty:
        raise _bad_request(f"Null value not supported for : {', '.join(empty)}")
    for change in changes:
        if change.kind not in tuple(ChangeKind):
            raise _bad_request(f"Unknown operations type {change.kind}")
        if change.value is not None:
            check_length(change.value)


def check_length(value: str) -> None:
    """Raise INVALID_CONFIG for a value that is too long (ConfigurationControlManager)."""
    if len(value) > VALUE_LENGTH_MAX:
        raise ApiError(ErrorCode.invalid_config, _TOO_LONG)


_TOO_LONG: Final = (
    "The configuration value cannot be added because it exceeds the maximum value size of "
    f"{VALUE_LENGTH_MAX} bytes."
)


def _alter_topic(
    builder: PlanBuilder,
    resource: ResourceChange,
    image: ClusterImage,
    defaults: Mapping[str, str],
    incremental: bool,
) -> None:
    if not resource.name:
        raise _bad_request("Default topic resources are not allowed.")
    check_topic_name(resource.name)
    topic = image.topic(resource.name)
    present = {} if topic is None else topic.overrides
    values = _changed(resource.changes, present, TopicConfig.definitions, incremental)
    check_topic_overrides(defaults, values, stored=present)
    if topic is None:
        raise ApiError(
            ErrorCode.unknown_topic_or_partition, f"The topic '{resource.name}' does not exist."
        )
    if values == present:
        return
    check_size(values, present)
    path = layout.topic_config_path(topic.name)
    builder.writes.append(config_write(path, values, topic.config_version))
    version = next_version(topic.config_version)
    changed = replace(topic, overrides=values, config_version=version)
    builder.deltas.append(TopicConfigChanged(changed))


def _elect_unclean(
    builder: PlanBuilder, image: ClusterImage, config: BrokerConfig, shutting_down: Collection[int]
) -> Generator[None, None, None]:
    """Elect leaders for the offline partitions that now allow an unclean election (KAFKA-5413)."""
    topics = dict(image.topics)
    default = before = config.unclean_leader_election_enable
    for delta in builder.deltas:
        if isinstance(delta, TopicConfigChanged):
            topics[delta.topic.name] = delta.topic
        elif isinstance(delta, BrokerConfigChanged) and delta.resource == EVERY_BROKER:
            default = _unclean_default(delta.config.values, config)
    if topics == image.topics and default == before:
        return
    brokers = all_brokers(image, shutting_down)
    changes, step = PartitionChanges(image), Step()
    for name, topic in topics.items():
        if step.is_full(2 + len(topic.partitions)):
            yield
        allowed = unclean_allowed(topic, default)
        if not allowed or unclean_allowed(image.topics[name], before):
            continue
        for index, state in enumerate(topic.partitions):
            if state.leader == NO_LEADER:
                after = with_leader(state, brokers, unclean=True)
                if after != state:
                    changes.put(topic, index, after)
    yield from changes.add_in_steps(builder)


def _unclean_default(cluster: Mapping[str, str], config: BrokerConfig) -> bool:
    """The controller's unclean.leader.election.enable, given the dynamic defaults `cluster`."""
    setting = BrokerConfig.definitions["unclean.leader.election.enable"]
    for values in (config.broker_dynamic, cluster, config.given):
        if setting.name in values:
            return bool(setting.parse(values[setting.name]))
    return bool(setting.default)


def _alter_broker(
    builder: PlanBuilder,
    resource: ResourceChange,
    image: ClusterImage,
    config: BrokerConfig,
    incremental: bool,
) -> None:
    if resource.name != EVERY_BROKER:
        _check_broker_name(resource.name, image)
    present = image.config(resource.name)
    values = _changed(resource.changes, present.values, BrokerConfig.definitions, incremental)
    check_dynamic(values, per_broker=resource.name != EVERY_BROKER)
    _check_in_force(resource.name, values, image, config)
    if values == present.values:
        return
    check_size(values, present.values)
    path = layout.broker_config_path(resource.name)
    builder.writes.append(config_write(path, values, present.version))
    changed = ConfigImage(values, next_version(present.version))
    builder.deltas.append(BrokerConfigChanged(resource.name, changed))


def _alter_group(
    builder: PlanBuilder,
    resource: ResourceChange,
    image: ClusterImage,
    config: BrokerConfig,
    incremental: bool,
) -> None:
    """A group may have settings before it exists (ControllerConfigurationValidator)."""
    if not resource.name:
        raise _bad_request("Default group resources are not allowed.")
    present = image.groups.get(resource.name, NO_CONFIG)
    values = _changed(resource.changes, present.values, GroupConfig.definitions, incremental)
    check_group_overrides(config, values)
    if values == present.values:
        return
    if present.version is None:
        if len(resource.name) > MAX_GROUP_CHARACTERS:
            message = f"A group name must not have more than {MAX_GROUP_CHARACTERS} characters."
            raise ApiError(ErrorCode.invalid_group_id, message)
        if len(image.groups) + len(builder.deltas) >= MAX_GROUPS:
            raise ApiError(
                ErrorCode.policy_violation,
                f"At most {MAX_GROUPS} groups can have settings of their own: delete those of"
                " groups that are gone.",
            )
    check_size(values, present.values)
    path = layout.group_config_path(resource.name)
    changed = NO_CONFIG
    if values:
        builder.writes.append(config_write(path, values, present.version))
        changed = ConfigImage(values, next_version(present.version))
    else:
        assert present.version is not None
        builder.writes.append(Delete(path, present.version))
    builder.deltas.append(GroupConfigChanged(resource.name, changed))


def changed_broker_values(
    resource: ResourceChange, image: ClusterImage, *, incremental: bool
) -> dict[str, str]:
    """The dynamic settings of a broker after these changes. Raises ApiError and ConfigError as
    `alter_configs` would refuse them.
    """
    _check_changes(resource.changes)
    present = image.config(resource.name).values
    values = _changed(resource.changes, present, BrokerConfig.definitions, incremental)
    check_dynamic(values, per_broker=resource.name != EVERY_BROKER)
    return values


def _check_in_force(
    resource: str, values: Mapping[str, str], image: ClusterImage, config: BrokerConfig
) -> None:
    """Raise ConfigError if the settings would contradict each other once they are in force.

    The configuration files of other brokers are not known here. Their settings are checked against
    the defaults, and again by each broker when it receives the delta.
    """
    own = str(config.id)
    cluster = values if resource == EVERY_BROKER else image.config(EVERY_BROKER).values
    broker = values if resource != EVERY_BROKER else image.config(own).values
    given = config.given if resource in (EVERY_BROKER, own) else {}
    dynamic = {name: value for name, value in {**cluster, **broker}.items() if is_known(name)}
    wanted = BrokerConfig({**given, **dynamic})
    who = own if resource == EVERY_BROKER else resource
    present = (image.config(who).values, image.config(EVERY_BROKER).values, given)
    _check_fetchers(wanted.num_replica_fetchers, present)


def _check_fetchers(wanted: int, present: Sequence[Mapping[str, str]]) -> None:
    """Raise ConfigError unless the number of replica fetchers stays between half and double of the
    present one (DynamicThreadPool.validateReconfiguration). Of `present` the first that has it is
    in force.
    """
    setting = BrokerConfig.definitions["num.replica.fetchers"]
    texts = (values[setting.name] for values in present if setting.name in values)
    text = next(texts, setting.default_text)
    assert text is not None
    now = int(setting.parse(text))
    if now // 2 <= wanted <= now * 2:
        return
    if wanted > now:
        limit = f"not be greater than double the current value {now}"
    else:
        limit = f"be at least half the current value {now}"
    raise ConfigError(
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update "
        f"validation failed for {setting.name}={wanted}, value should {limit} for configuration "
        "Invalid dynamic configuration"
    )


def check_size(values: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG if the settings are too large, unless they become fewer."""
    size_bytes = len(layout.write_config(values))
    if size_bytes > SETTINGS_BYTES_MAX and size_bytes > len(layout.write_config(present)):
        raise ApiError(
            ErrorCode.invalid_config,
            f"All settings of the resource would take {size_bytes} bytes: at most "
            f"{SETTINGS_BYTES_MAX} are allowed.",
        )


def _check_broker_name(name: str, image: ClusterImage) -> None:
    """Accept any broker that is or was in the cluster (Kafka's ConfigResourceExistenceChecker)."""
    if not name.lstrip("+-").isdecimal() or len(name) > 11:
        raise _bad_request(f"Node id must be an integer, but it is: {name}")
    number = int(name)
    if str(number) != name or (number not in image.brokers and number not in image.directories):
        raise ApiError(ErrorCode.broker_id_not_registered, f"No node with id {name} found.")


def _changed(
    changes: Sequence[ConfigChange],
    present: Mapping[str, str],
    definitions: Mapping[str, Setting[Any]],
    incremental: bool,
) -> dict[str, str]:
    """The settings after the changes."""
    if not incremental:
        return {change.name: change.value for change in changes if change.value is not None}
    values = dict(present)
    for change in changes:
        if change.kind == ChangeKind.DELETE:
            values.pop(change.name, None)
        elif change.kind == ChangeKind.SET:
            assert change.value is not None
            values[change.name] = change.value
        else:
            values[change.name] = _edited_list(change, values, definitions)
    return values


def _edited_list(
    change: ConfigChange, values: Mapping[str, str], definitions: Mapping[str, Setting[Any]]
) -> str:
    """A list with entries added or removed (APPEND, SUBTRACT)."""
    definition = definitions.get(change.name)
    kind = ChangeKind(change.kind)
    if definition is None or definition.kind is not ConfigType.LIST:
        raise ApiError(
            ErrorCode.invalid_config,
            f"Can't {kind.name} to key {change.name} because its type is not LIST.",
        )
    text = values.get(change.name, definition.default_text)
    members = [member for member in (text or "").split(",") if member]
    assert change.value is not None
    words = change.value.split(",")
    # Two lists may have thousands of words: their sizes must not be multiplied.
    if kind is ChangeKind.APPEND:
        there = set(members)
        members += (word for word in dict.fromkeys(words) if word not in there)
    else:
        unwanted = Counter(words)
        kept = []
        for member in members:
            if unwanted[member]:
                unwanted[member] -= 1
            else:
                kept.append(member)
        members = kept
    result = ",".join(members)
    check_length(result)
    return result


def config_write(path: str, values: Mapping[str, str], version: int | None) -> Operation:
    """Writes a node of settings; `version` is the present one's, None if there is none."""
    data = layout.write_config(values)
    return Create(path, data) if version is None else SetData(path, data, version)


def next_version(version: int | None) -> int:
    """The version of a node after `config_write`."""
    return 0 if version is None else version + 1


def _bad_request(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)
