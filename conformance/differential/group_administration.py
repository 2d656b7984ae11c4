"""Scripts about the administration of groups of every kind: their settings (KIP-848, resource type
32), lists of groups, the features that the protocols depend on, and requests that say too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from conformance.differential.group_scripts import beat, commit
from conformance.differential.group_settings import ALTER, DESCRIBE, GROUP
from conformance.differential.session import Session
from conformance.differential.sharing import Sharing
from conformance.differential.streams_scripts import beat as streams_beat
from ottla.protocol.errors import ErrorCode

_ALTER_ALL, _LIST, _LIST_RESOURCES = 33, 16, 74
CONSUMERS, SHARES, STREAMS = 69, 77, 89
SET, DELETE, APPEND, SUBTRACT = range(4)
FEATURES: Final = ("group.version", "share.version", "streams.version")
MAX_ELEMENTS: Final = 1_000_000
MAX_TAGGED_FIELDS: Final = 10_000


# Settings.


def _described(session: Session, group: str, names: Sequence[str] | None, version: int = 4) -> None:
    build = session.build(DESCRIBE, version)
    resource = build.DescribeConfigsResource(
        resource_type=GROUP,
        resource_name=session.name(group) if group else "",
        configuration_keys=None if names is None else tuple(names),
    )
    request = build.DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    session.ask(f"settings {version} of {group!r}: {names}", request)


def _altered(
    session: Session,
    group: str,
    *changes: tuple[str, int, str | None],
    is_dry_run: bool = False,
) -> None:
    build = session.build(ALTER, 1)
    resource = build.AlterConfigsResource(
        resource_type=GROUP,
        resource_name=session.name(group) if group else "",
        configs=tuple(
            build.AlterableConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in changes
        ),
    )
    request = build.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=is_dry_run)
    session.ask(f"alter {group!r}: {changes}{' dry' * is_dry_run}", request)


def _has(session: Session, group: str, name: str, value: str) -> bool:
    build = session.build(DESCRIBE, 4)
    resource = build.DescribeConfigsResource(
        resource_type=GROUP, resource_name=session.name(group), configuration_keys=(name,)
    )
    request = build.DescribeConfigsRequest(resources=(resource,))
    (found,) = session.ask("setting", request, is_recorded=False).results
    return [each.value for each in found.configs] == [value]


def settings_of_groups(session: Session) -> None:
    """Described, changed, taken back, and refused where they make no sense."""
    session_ms, limit = "consumer.session.timeout.ms", "share.delivery.count.limit"
    for version in range(1, 5):
        _described(session, "g", None, version)
    _described(session, "", None)
    _described(session, "g", ())
    _described(session, "g", (session_ms, "no.such.setting"))
    _altered(session, "", (session_ms, SET, "50000"))
    for value in ("50000", "44999", "60001", "0", "-1", "x", "", None):
        _altered(session, "g", (session_ms, SET, value), is_dry_run=True)
    for name, values in {
        "consumer.heartbeat.interval.ms": ("4999", "15000", "15001"),
        "consumer.assignment.interval.ms": ("-1", "0", "15000", "15001"),
        "share.session.timeout.ms": ("44999", "45000", "60001"),
        "share.heartbeat.interval.ms": ("4999", "5000", "15001"),
        "share.record.lock.duration.ms": ("0", "15000", "60000", "60001"),
        limit: ("1", "2", "10", "11", "25"),
        "share.partition.max.record.locks": ("99", "100", "10000", "10001"),
        "share.auto.offset.reset": ("none", "latest", "by_duration:PT1H", "by_duration:-PT1H", ""),
        "share.isolation.level": ("read_committed", "READ_COMMITTED", "serializable"),
        "share.renew.acknowledge.enable": ("true", "no"),
        "share.assignment.interval.ms": ("-1", "0", "15001"),
        "streams.session.timeout.ms": ("44999", "45000", "60001"),
        "streams.heartbeat.interval.ms": ("4999", "5000", "15001"),
        "streams.num.standby.replicas": ("-1", "0", "2", "3"),
        "streams.initial.rebalance.delay.ms": ("-1", "0", "15000", "15001"),
        "streams.assignment.interval.ms": ("-1", "0", "15001"),
        "streams.task.offset.interval.ms": ("0", "1", "14999", "15000"),
        "errors.deadletterqueue.topic.name": ("__t", "dead", ""),
        "errors.deadletterqueue.copy.record.enable": ("true", "1"),
        "streams.assignor.name": ("sticky", "other", ""),
        "streams.rack.aware.assignment.tags": ("",),
        "no.such.setting": ("1",),
    }.items():
        for value in values:
            _altered(session, "g", (name, SET, value), is_dry_run=True)
    _altered(session, "g", (session_ms, APPEND, "50000"))
    _altered(session, "g", (session_ms, SUBTRACT, "50000"))
    _altered(session, "g", (session_ms, 9, "50000"))
    _altered(session, "g", (session_ms, SET, "50000"), (session_ms, SET, "51000"))
    _altered(session, "g", (session_ms, SET, "50000"), (limit, SET, "1"))
    _altered(session, "g", (session_ms, SET, "50000"), (limit, SET, "7"))
    session.wait("the setting is in force", partial(_has, session, "g", limit, "7"))
    _described(session, "g", (session_ms, limit))
    _altered(session, "g", (limit, DELETE, None), ("no.such.setting", DELETE, None))
    _altered(session, "g", (limit, DELETE, None))
    session.wait("the setting is gone", partial(_has, session, "g", limit, "5"))
    _described(session, "g", (session_ms, limit))
    _replaced(session, limit, "8")
    session.wait("the settings are others", partial(_has, session, "g", limit, "8"))
    _described(session, "g", (session_ms, limit))
    for version, kinds in ((1, (GROUP,)), (1, (GROUP, 99)), (1, (-1,)), (0, ())):
        _listed_resources(session, version, kinds)


def _replaced(session: Session, name: str, value: str) -> None:
    """All settings of the group by this one, as clients of before KIP-339."""
    build = session.build(_ALTER_ALL, 2)
    resource = build.AlterConfigsResource(
        resource_type=GROUP,
        resource_name=session.name("g"),
        configs=(build.AlterableConfig(name=name, value=value),),
    )
    session.ask("replace all", build.AlterConfigsRequest(resources=(resource,)))


def _listed_resources(session: Session, version: int, kinds: Sequence[int]) -> None:
    """Other scripts have groups too: only those of this one are compared."""
    build = session.build(_LIST_RESOURCES, version)
    fields = {"resource_types": tuple(kinds)} if version else {}
    answer = session.ask("list", build.ListConfigResourcesRequest(**fields), is_recorded=False)
    mine = [
        each for each in answer.config_resources if each.resource_name.startswith(session.name(""))
    ]
    session.record(f"resources {version} {kinds}", [ErrorCode(answer.error_code).name, mine])


# Lists.


def lists_of_groups(session: Session) -> None:
    """By state and by type, with a group of each."""
    session.create("t")
    session.create("u", 1)
    commit(session, "", -1, 8, group="classic")
    beat(session, "a", 0, group="consumer")
    beat(session, "a", 0, group="left")
    beat(session, "a", -1, group="left")
    sharing = Sharing(session, "share", "u")
    sharing.join("a")
    # Longer than the delay before a first assignment takes nothing away from its state.
    streams_beat(session, "a", 0, group_id=session.name("streams"))
    for version in range(6):
        _listed(session, version)
    for states in (("Stable",), ("stable", "EMPTY"), ("Assigning",), ("no such state",), ("",)):
        for version in (4, 5):
            _listed(session, version, states)
    for kinds in (
        ("classic",), ("Consumer",), ("SHARE",), ("streams",), ("share", "streams"), ("none",),
        ("unknown",), ("",),
    ):  # fmt: skip
        _listed(session, 5, (), kinds)
        _listed(session, 5, ("Stable", "Empty"), kinds)


def _listed(
    session: Session, version: int, states: Sequence[str] = (), kinds: Sequence[str] = ()
) -> None:
    """Other scripts have groups too: only those of this one are compared."""
    fields: dict[str, Any] = {}
    if version >= 4:
        fields["states_filter"] = tuple(states)
    if version >= 5:
        fields["types_filter"] = tuple(kinds)
    request = session.build(_LIST, version).ListGroupsRequest(**fields)
    answer = session.ask("list", request, is_recorded=False)
    mine = [each for each in answer.groups if each.group_id.startswith(session.name(""))]
    code = ErrorCode(answer.error_code).name
    session.record(f"groups {version} {states} {kinds}", [code, mine])


def descriptions_with_operations(session: Session) -> None:
    """What the client may do to a group of each kind, asked by the request of each kind."""
    session.create("t", 1)
    commit(session, "", -1, 8, group="classic")
    beat(session, "a", 0, group="consumer")
    Sharing(session, "share").join("a")
    streams_beat(session, "a", 0, group_id=session.name("streams"))
    groups = tuple(map(session.name, ("classic", "consumer", "share", "streams", "none")))
    for key, version, name, field in (
        (15, 6, "DescribeGroups", "groups"),
        (CONSUMERS, 1, "ConsumerGroupDescribe", "group_ids"),
        (SHARES, 1, "ShareGroupDescribe", "group_ids"),
        (STREAMS, 1, "StreamsGroupDescribe", "group_ids"),
    ):
        ask = getattr(session.build(key, version), f"{name}Request")
        for group in groups:
            request = ask(**{field: (group,)}, include_authorized_operations=True)
            answer = session.ask(name, request, is_recorded=False)
            found = [
                (ErrorCode(each.error_code).name, each.authorized_operations)
                for each in answer.groups
            ]
            session.record(f"{name} of {group}", found)


# Features.


def features_of_groups(session: Session) -> None:
    """Leaves them as they were: groups of other scripts need them."""
    for version in (3, 4):
        _features(session, version)
    for name in FEATURES:
        for level in (-1, 0, 1, 2, 3, 9):
            for upgrade_type in (1, 2, 3):
                session.update_feature(name, level, upgrade_type=upgrade_type, validate_only=True)
    _features(session, 4)


def _features(session: Session, version: int) -> None:
    request = session.build(18, version).ApiVersionsRequest(
        client_software_name="differential", client_software_version="1"
    )
    answer = session.ask("ApiVersions", request, is_recorded=False)
    for name in FEATURES:
        supported = [each for each in answer.supported_features if each.name == name]
        finalized = [each for each in answer.finalized_features if each.name == name]
        session.record(f"ApiVersions {version}: {name}", [supported, finalized])


# Limits of what one request may hold.


def requests_that_say_too_much(session: Session) -> None:
    """ConsumerGroupDescribe with more groups, or more tagged fields, than a decoder takes."""
    none, not_authorized = bytes(1), bytes(1)
    too_many = _varint(MAX_ELEMENTS + 2) + b"\1" * (MAX_ELEMENTS + 1)
    session.ask_bytes("elements", CONSUMERS, none + too_many + not_authorized + none)
    nobody = _varint(1)
    for count in (1, MAX_TAGGED_FIELDS, MAX_TAGGED_FIELDS + 1):
        tags = _varint(count) + b"".join(_varint(tag) + bytes(1) for tag in range(count))
        session.ask_bytes(f"{count} tags", CONSUMERS, none + nobody + not_authorized + tags)


def _varint(number: int) -> bytes:
    """Unsigned, as in a flexible message; one for the length of an array is one larger."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


GROUP_ADMINISTRATION: Final = (
    settings_of_groups,
    lists_of_groups,
    descriptions_with_operations,
    features_of_groups,
    requests_that_say_too_much,
)
