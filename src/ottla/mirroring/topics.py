"""Finds out what the plan of topics needs to know, and carries the plan out at the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ottla.client.admin.acls import acls, create_acls
from ottla.client.admin.committed_offsets import commits_of
from ottla.client.admin.configs import alter_settings, topic_settings
from ottla.client.admin.groups import listed_groups
from ottla.client.admin.offsets import end_offsets
from ottla.client.admin.partitions import in_chunks
from ottla.client.admin.topics import (
    DEFAULT,
    NewTopic,
    add_partitions,
    create_topics,
    known_topics,
)
from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events
from ottla.mirroring.clusters import id_of
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.names import BEGIN, group_of, map_topic_of
from ottla.mirroring.position import Origin, is_same, read_origin
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.told_once import ToldOnce
from ottla.mirroring.topic_plan import (
    Alteration,
    Creation,
    Matches,
    SourceTopic,
    TargetTopic,
    TopicPlan,
    chosen,
    plan_topics,
)
from ottla.protocol.access import Resource
from ottla.protocol.errors import ErrorCode
from ottla.security.acl import Acl, Pattern, PatternType
from ottla.wording.plural import plural

MAX_CREATED: Final = 50
"""Of one request."""
MAP_SETTINGS: Final = {"cleanup.policy": "compact"}


class TopicWork:
    """The topics of a mirror, again and again. For one thread, which owns both clients."""

    def __init__(
        self,
        spec: MirrorSpec,
        source: Client,
        target: Client,
        wanted: Matches,
        unwanted: Matches,
        tell: Tell,
    ) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._wanted = wanted
        self._unwanted = unwanted
        self._tell = tell
        self._tell_once = ToldOnce(tell)

    def make_map_topic(self) -> None:
        """Makes the topic of the offset map, unless it is there."""
        name = map_topic_of(self._spec.name)
        if not known_topics(self._target, [name]):
            new = NewTopic(name, 1, self._factor, settings=MAP_SETTINGS)
            ignoring_existing(lambda: create_topics(self._target, [new]))

    @property
    def _factor(self) -> int:
        return self._spec.replication_factor or DEFAULT

    def refresh(self) -> TopicPlan:
        """Looks at both clusters, creates and changes topics, and returns the plan. Raises
        ClientError.
        """
        plan = self._plan()
        self._create(plan.create)
        for name, partitions in plan.extend.items():
            add_partitions(self._target, name, partitions)
            facts = {"topic": name, "partitions": partitions}
            text = f"Topic {name} has {partitions} partitions now, as in the source."
            self._tell(Event(events.EXTENDED, text, facts))
        for each in plan.alter:
            self._alter(each)
        for name, reason in plan.refused.items():
            self._say_once(events.REFUSED, name, f"Topic {name} is not mirrored: {reason}")
        for name in plan.deleted:
            text = f"The source has no topic for {name} any more. What was mirrored stays."
            self._say_once(events.DELETED, name, text)
        if self._spec.with_acls:
            self._copy_acls(plan.mirrored)
        return plan

    def _say_once(self, kind: str, topic: str, text: str) -> None:
        self._tell_once(Event(kind, text, {"topic": topic}))

    def _plan(self) -> TopicPlan:
        here, there = self._source.metadata(None), self._target.metadata(None)
        names = [
            name
            for name in chosen(list(here.topics), self._wanted, self._unwanted)
            if here.topics[name].partitions
        ]
        mirrored_from = self._mirrored_from()
        settings = own_settings(self._source, names)
        source = [
            SourceTopic(
                name,
                id_of(here.topics[name]),
                len(here.topics[name].partitions),
                settings.get(name, {}),
                mirrored_from.get(name, ()),
            )
            for name in names
        ]
        origins = self._origins()
        known = [f"{self._spec.prefix}{name}" for name in names]
        known = [name for name in known if name in there.topics and there.topics[name].partitions]
        found = own_settings(self._target, known)
        doubtful = [
            TopicPartition(name, index)
            for name in known
            if name not in origins
            or not is_same(id_of(there.topics[name]), origins[name].target_id)
            for index in there.topics[name].partitions
        ]
        filled = {each.topic for each, end in end_offsets(self._target, doubtful).items() if end}
        if filled:
            # An instance may have begun since: it commits its position before the first record.
            origins = self._origins()
        target = {
            name: TargetTopic(
                len(there.topics[name].partitions),
                id_of(there.topics[name]),
                found.get(name, {}),
                name in filled,
            )
            for name in known
        }
        return plan_topics(
            self._spec,
            source,
            target,
            origins,
            {name: id_of(topic) for name, topic in here.topics.items()},
            source_cluster=str(here.cluster_id),
            target_cluster=str(there.cluster_id),
        )

    def _origins(self) -> dict[str, Origin]:
        """By topic at the target: where this mirror has it from."""
        found: dict[str, Origin] = {}
        for each, commit in commits_of(self._target, group_of(self._spec.name)).items():
            origin = read_origin(commit.metadata)
            if origin is not None:
                found[each.topic] = origin
        return found

    def _mirrored_from(self) -> dict[str, tuple[str, ...]]:
        """By topic of the source: the clusters that mirrors fill it from."""
        found: dict[str, tuple[str, ...]] = {}
        for group in listed_groups(self._source):
            if group.group.startswith(BEGIN):
                for each, commit in commits_of(self._source, group.group).items():
                    origin = read_origin(commit.metadata)
                    if origin is not None:
                        found[each.topic] = origin.clusters
        return found

    def _create(self, topics: Sequence[Creation]) -> None:
        for some in in_chunks(topics, MAX_CREATED):
            try:
                create_topics(self._target, [self._new(each) for each in some])
            except RefusedError:
                for each in some:
                    self._create_alone(each)
        for each in topics:
            text = f"Created topic {each.name} with {plural(each.partitions, 'partition')}."
            facts = {"topic": each.name, "partitions": each.partitions}
            self._tell(Event(events.CREATED, text, facts))

    def _create_alone(self, topic: Creation) -> None:
        try:
            ignoring_existing(lambda: create_topics(self._target, [self._new(topic)]))
        except RefusedError as error:
            if error.code is not ErrorCode.invalid_config:
                raise
            bare = Creation(topic.name, topic.partitions, {})
            ignoring_existing(lambda: create_topics(self._target, [self._new(bare)]))
            self._alter(Alteration(topic.name, topic.settings, ()))

    def _new(self, topic: Creation) -> NewTopic:
        return NewTopic(topic.name, topic.partitions, self._factor, settings=topic.settings)

    def _alter(self, wanted: Alteration) -> None:
        """All at once, or one by one without those that the target does not take."""
        try:
            alter_settings(self._target, "topic", wanted.name, wanted.settings, wanted.unset)
        except RefusedError as error:
            if error.code is not ErrorCode.invalid_config:
                raise
            done = self._alter_each(wanted)
        else:
            done = wanted
        changes = [f"{name}={value}" for name, value in done.settings.items()]
        changes += [f"{name} unset" for name in done.unset]
        if changes:
            text = f"Topic {wanted.name}: {', '.join(changes)}, as in the source."
            facts = {"topic": wanted.name, "set": dict(done.settings), "unset": list(done.unset)}
            self._tell(Event(events.ALTERED, text, facts))

    def _alter_each(self, wanted: Alteration) -> Alteration:
        taken: dict[str, str] = {}
        for name, value in wanted.settings.items():
            try:
                alter_settings(self._target, "topic", wanted.name, {name: value}, ())
                taken[name] = value
            except RefusedError as error:
                text = f"Topic {wanted.name} is mirrored without {name}={value}: {error.message}"
                self._say_once(events.ALTERED, wanted.name, text)
        if wanted.unset:
            alter_settings(self._target, "topic", wanted.name, {}, wanted.unset)
        return Alteration(wanted.name, taken, wanted.unset)

    def _copy_acls(self, mirrored: Mapping[str, SourceTopic]) -> None:
        """Those of the topics themselves. None is deleted: the target may have its own."""
        names = {topic.name: name for name, topic in mirrored.items()}
        wanted = [
            Acl(Pattern(Resource.TOPIC, names[pattern.name], PatternType.LITERAL), entry)
            for pattern, entry in acls(self._source)
            if pattern.resource is Resource.TOPIC
            and pattern.type is PatternType.LITERAL
            and pattern.name in names
        ]
        missing = sorted(set(wanted) - set(acls(self._target)))
        if missing:
            create_acls(self._target, missing)
            text = f"Added {plural(len(missing), 'ACL')} of topics, as in the source."
            self._tell(Event(events.ACLS, text, {"acls": len(missing)}))


def own_settings(client: Client, topics: Sequence[str]) -> dict[str, dict[str, str]]:
    """The settings that were set on each topic itself."""
    return {
        topic: {
            each.name: each.value
            for each in settings
            if each.source == "topic" and each.value is not None and not each.is_sensitive
        }
        for topic, settings in topic_settings(client, topics).items()
    }


def ignoring_existing(make: Callable[[], None]) -> None:
    """Another instance may have been faster. Raises ClientError."""
    try:
        make()
    except RefusedError as error:
        if error.code is not ErrorCode.topic_already_exists:
            raise
