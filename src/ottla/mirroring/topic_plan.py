"""Which topics are mirrored, and what has to be created or changed at the target for that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from ottla.mirroring.names import is_of_a_mirror
from ottla.mirroring.position import Origin, is_same
from ottla.mirroring.spec import MirrorSpec

Matches = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic of the source. `settings`: those that were set on it. `mirrored_from`: the clusters
    from which a mirror fills it.
    """

    name: str
    id: str | None
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)
    mirrored_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetTopic:
    """A topic of the target."""

    partitions: int
    id: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    has_records: bool = False
    is_forgotten: bool = False
    """Whether this mirror has written to it, by its map of offsets, which does not say more."""


@dataclass(frozen=True, slots=True)
class Creation:
    """A topic to create."""

    name: str
    partitions: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Alteration:
    """Settings of a topic to change."""

    name: str
    settings: Mapping[str, str]
    unset: tuple[str, ...]


@dataclass(slots=True)
class TopicPlan:
    """What to do, by names at the target; and which topics are mirrored then."""

    create: list[Creation] = field(default_factory=list)
    extend: dict[str, int] = field(default_factory=dict)
    """The new number of partitions."""
    alter: list[Alteration] = field(default_factory=list)
    mirrored: dict[str, SourceTopic] = field(default_factory=dict)
    """By name at the target."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a topic of the source is not mirrored, as a sentence."""
    deleted: list[str] = field(default_factory=list)
    """Names at the target of topics that the source does not have any more."""


def chosen(names: Collection[str], wanted: Matches, unwanted: Matches) -> list[str]:
    """The topics that are meant, in order. Internal topics and those of mirrors never are."""
    return sorted(
        name
        for name in names
        if not name.startswith("__")
        and not is_of_a_mirror(name)
        and wanted(name)
        and not unwanted(name)
    )


def plan_topics(
    spec: MirrorSpec,
    source: Collection[SourceTopic],
    target: Mapping[str, TargetTopic],
    origins: Mapping[str, Origin],
    present: Mapping[str, str | None],
    *,
    source_cluster: str,
    target_cluster: str,
) -> TopicPlan:
    """`source`: the topics that are meant. `origins`: by name at the target, of the topics for
    which this mirror has committed positions. `present`: all topics of the source with their ids.
    """
    plan = TopicPlan()
    for topic in source:
        name = f"{spec.prefix}{topic.name}"
        there = target.get(name)
        reason = why_refused(
            spec,
            topic,
            name,
            there,
            origins.get(name),
            source_cluster=source_cluster,
            target_cluster=target_cluster,
        )
        if reason is not None:
            plan.refused[topic.name] = reason
            continue
        plan.mirrored[name] = topic
        wanted = {
            key: value for key, value in topic.settings.items() if key not in spec.exclude_settings
        }
        if there is None:
            plan.create.append(Creation(name, topic.partitions, wanted))
            continue
        if there.partitions < topic.partitions:
            plan.extend[name] = topic.partitions
        changed = {key: value for key, value in wanted.items() if there.settings.get(key) != value}
        unset = sorted(there.settings.keys() - wanted.keys() - spec.exclude_settings)
        if changed or unset:
            plan.alter.append(Alteration(name, changed, tuple(unset)))
    known = {f"{spec.prefix}{topic.name}" for topic in source}
    ids = frozenset(present.values())
    plan.deleted = sorted(
        name
        for name, origin in origins.items()
        if name not in known
        and source_cluster in origin.clusters[:1]
        # A topic that is only not meant any more is there.
        and name.removeprefix(spec.prefix) not in present
        and (origin.topic_id is None or origin.topic_id not in ids)
    )
    return plan


def why_refused(
    spec: MirrorSpec,
    topic: SourceTopic,
    name: str,
    there: TargetTopic | None,
    origin: Origin | None,
    *,
    source_cluster: str,
    target_cluster: str,
) -> str | None:
    """Why this topic must not be mirrored, as a sentence; None if it may."""
    if source_cluster == target_cluster and name == topic.name:
        return f"source and target are the same cluster, {source_cluster}."
    if target_cluster in topic.mirrored_from:
        return "it is itself mirrored from the target, so its records would go in a circle."
    if origin is not None and there is not None and is_same(there.id, origin.target_id):
        if source_cluster not in origin.clusters[:1]:
            return (
                f"topic {name!r} at the target is mirrored from another cluster, "
                f"{', '.join(origin.clusters[:1]) or 'unknown'}."
            )
        if not is_same(topic.id, origin.topic_id):
            return (
                "it was deleted and created again; what was mirrored is from the topic before. "
                f"To mirror the new one from its beginning: delete {name!r} at the target."
            )
        return None
    if there is not None and there.is_forgotten:
        return (
            f"the target has forgotten the mirror's positions for {name!r} "
            "(offsets.retention.minutes), and its map of offsets does not say of which topic they "
            f"were. To mirror it again from its beginning: delete {name!r} at the target."
        )
    if there is not None and there.has_records and not spec.into_existing:
        return (
            f"topic {name!r} at the target has records that this mirror did not write. To add to "
            "them: --into-existing. To keep them apart: --prefix."
        )
    return None
