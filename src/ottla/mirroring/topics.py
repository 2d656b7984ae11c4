"""Finds out what the plan of topics needs to know, and carries the plan out at the target."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from ottla.client.admin.acls import acls, create_acls
from ottla.client.admin.committed_offsets import commits_of
from ottla.client.admin.configs import alter_settings, topic_settings
from ottla.client.admin.groups import listed_groups
from ottla.client.admin.offsets import end_offsets
from ottla.client.admin.partitions import in_chunks
from ottla.client.admin.permissions import topic_permissions
from ottla.client.admin.topics import (
    DEFAULT,
    NewTopic,
    add_partitions,
    create_topics,
    known_topics,
)
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.metadata import Topic
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events
from ottla.mirroring.clusters import SideClient, id_of
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
from ottla.protocol.access import Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.security.acl import Acl, Pattern, PatternType, word
from ottla.wording.plural import plural

MAX_CREATED: Final = 50
"""Of one request."""
TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
MAP_SETTINGS: Final = {"cleanup.policy": "compact"}


class TopicWork:
    """The topics of a mirror, again and again. For one thread, which owns both clients."""

    def __init__(
        self,
        spec: MirrorSpec,
        source: SideClient,
        target: SideClient,
        wanted: Matches,
        unwanted: Matches,
        read_map: Callable[[], Mapping[str, Origin | None]],
        tell: Tell,
    ) -> None:
        """`read_map`: gives the source's topics that are in the offset map, and where they are
        from if that is known; it is slow.
        """
        self._spec = spec
        self._source = source
        self._target = target
        self._wanted = wanted
        self._unwanted = unwanted
        self._read_map = read_map
        self._tell = tell
        self._tell_once = ToldOnce(tell)
        self._permitted: set[str] = set()
        """Topics of the target whose permissions have been looked at."""
        self._made: set[str] = set()
        """Topics that were created here. What is in them before a position is committed are the
        records of an aborted transaction: the mirror was writing as the copy before was deleted.
        """

    def make_map_topic(self) -> None:
        """Makes the topic of the offset map, unless it is there."""
        name = map_topic_of(self._spec.name)
        with self._target.asked():
            if not known_topics(self._target, [name]):
                new = NewTopic(name, 1, self._factor, settings=MAP_SETTINGS)
                ignoring_existing(lambda: create_topics(self._target, [new]))
            found = topic_permissions(self._target, [name])
            for operation in (Operation.READ, Operation.WRITE):
                if lacks(found.get(name), operation):
                    code = ErrorCode.topic_authorization_failed
                    needs = Needs(word(operation), name)
                    raise RefusedError("use the topic of the offset map", code, None, needs)

    @property
    def _factor(self) -> int:
        return self._spec.replication_factor or DEFAULT

    def refresh(self) -> TopicPlan:
        """Looks at both clusters, creates and changes topics, and returns the plan. Raises
        ClientError.
        """
        plan = self._plan()
        with self._target.asked():
            self._create(plan.create)
            for name, partitions in plan.extend.items():
                add_partitions(self._target, name, partitions)
                facts = {"topic": name, "partitions": partitions}
                text = f"Topic {name} has {partitions} partitions now, as in the source."
                self._tell(Event(events.EXTENDED, text, facts))
            for each in plan.alter:
                self._alter(each)
        self._leave_out_forbidden(plan)
        for name, reason in plan.refused.items():
            self._say_once(events.REFUSED, name, f"Topic {name} is not mirrored: {reason}")
        for name in plan.deleted:
            text = f"The source has no topic for {name} any more. What was mirrored stays."
            self._say_once(events.DELETED, name, text)
        if self._spec.with_acls:
            self._copy_acls(plan.mirrored)
        return plan

    def _leave_out_forbidden(self, plan: TopicPlan) -> None:
        """Topics that may not be read at the source, or not be written at the target."""
        new = {each: topic.name for each, topic in plan.mirrored.items()}
        new = {each: name for each, name in new.items() if each not in self._permitted}
        # TxnOffsetCommit needs Read on the topics whose offsets are committed.
        sides = (
            (self._source, new, (Operation.READ,)),
            (self._target, {each: each for each in new}, (Operation.READ, Operation.WRITE)),
        )
        for client, names, operations in sides:
            with client.asked():
                found = topic_permissions(client, sorted(names.values()))
            for each, name in names.items():
                lacking = [one for one in operations if lacks(found.get(name), one)]
                if lacking and each in plan.mirrored:
                    del plan.mirrored[each]
                    plan.refused[new[each]] = client.lacks(word(lacking[0]), "topic", name)
        self._permitted |= new.keys() & plan.mirrored.keys()

    def _tell_hidden(self, plan: TopicPlan, known: Collection[str]) -> None:
        """Topics that are meant by their whole names, or were mirrored: that this client does not
        see them at the source may be for lack of a permission.
        """
        gone = {name.removeprefix(self._spec.prefix): name for name in plan.deleted}
        names = {each for each in self._spec.topics if TOPIC_NAME.fullmatch(each)} - set(known)
        names |= gone.keys()
        with self._source.asked():
            found = topic_permissions(self._source, sorted(names))
        for name, allowed in found.items():
            if allowed is not None and not allowed:
                plan.refused[name] = self._source.lacks("Read", "topic", name)
                if name in gone:
                    plan.deleted.remove(gone[name])

    def _say_once(self, kind: str, topic: str, text: str) -> None:
        self._tell_once(Event(kind, text, {"topic": topic}))

    def _plan(self) -> TopicPlan:
        with self._source.asked():
            here = self._source.metadata(None)
            names = [
                name
                for name in chosen(list(here.topics), self._wanted, self._unwanted)
                if here.topics[name].partitions
            ]
            mirrored_from = self._mirrored_from()
            settings = own_settings(self._source, names)
        with self._target.asked():
            there = self._target.metadata(None)
            known = [f"{self._spec.prefix}{name}" for name in names]
            target, origins = self._copies(known, there.topics)
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
        plan = plan_topics(
            self._spec,
            source,
            target,
            origins,
            {name: id_of(topic) for name, topic in here.topics.items()},
            source_cluster=str(here.cluster_id),
            target_cluster=str(there.cluster_id),
        )
        self._tell_hidden(plan, here.topics)
        return plan

    def _copies(
        self, names: Sequence[str], there: Mapping[str, Topic]
    ) -> tuple[dict[str, TargetTopic], dict[str, Origin]]:
        """Those of these topics that the target has, and where this mirror has topics from."""
        origins = self._origins()
        known = [name for name in names if name in there and there[name].partitions]
        found = own_settings(self._target, known)
        doubtful = [
            TopicPartition(name, index)
            for name in known
            if name not in self._made
            and (name not in origins or not is_same(id_of(there[name]), origins[name].target_id))
            for index in there[name].partitions
        ]
        filled = {each.topic for each, end in end_offsets(self._target, doubtful).items() if end}
        if filled:
            # An instance may have begun since: it commits its position before the first record.
            origins = self._origins()
        forgotten = self._forgotten(filled - origins.keys())
        for name, origin in forgotten.items():
            # Without an id nobody knows whether it is still the topic that was written to.
            if origin is not None and origin.target_id is not None:
                origins[name] = origin
        target = {
            name: TargetTopic(
                len(there[name].partitions),
                id_of(there[name]),
                found.get(name, {}),
                name in filled,
                name in forgotten and name not in origins,
            )
            for name in known
        }
        return target, origins

    def _forgotten(self, names: Collection[str]) -> dict[str, Origin | None]:
        """Those of these topics at the target that this mirror has written to, though it has no
        positions for them.
        """
        if not names:
            return {}
        found = self._read_map()
        sources = {name: name.removeprefix(self._spec.prefix) for name in names}
        return {name: found[source] for name, source in sources.items() if source in found}

    def _origins(self) -> dict[str, Origin]:
        """By topic at the target: where this mirror has it from."""
        found: dict[str, Origin] = {}
        group = group_of(self._spec.name)
        try:
            commits = commits_of(self._target, group)
        except RefusedError as error:
            if error.code is ErrorCode.group_authorization_failed:
                # Membership needs more than what was just asked.
                error.needs = Needs("Read", group)
            raise
        for each, commit in commits.items():
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
            self._made.add(each.name)
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
        with self._source.asked():
            found = acls(self._source)
        wanted = [
            Acl(Pattern(Resource.TOPIC, names[pattern.name], PatternType.LITERAL), entry)
            for pattern, entry in found
            if pattern.resource is Resource.TOPIC
            and pattern.type is PatternType.LITERAL
            and pattern.name in names
        ]
        with self._target.asked():
            missing = sorted(set(wanted) - set(acls(self._target)))
            if missing:
                create_acls(self._target, missing)
        if missing:
            text = f"Added {plural(len(missing), 'ACL')} of topics, as in the source."
            self._tell(Event(events.ACLS, text, {"acls": len(missing)}))


def lacks(allowed: frozenset[Operation] | None, operation: Operation) -> bool:
    """Whether this is known to be missing."""
    return allowed is not None and operation not in allowed


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
