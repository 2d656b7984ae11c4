"""A broker's replicas: who leads and follows what, its fetch loops, and those who wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.protocol.errors import ErrorCode
from ottla.replication.follower import Question
from simulation.messages import (
    Ends,
    Fetch,
    Fetched,
    Latest,
    Produce,
    Produced,
    Read,
    ReadBack,
    Wanted,
)
from simulation.replica import LAG_MAX_MS, Replica

if TYPE_CHECKING:
    from simulation.broker import Broker
    from simulation.network import Reply

FETCH_WAIT_MS = 350
_FETCH_TIMEOUT_MS = 900
_BACKOFF_MS = 100
_WAITING_MOST = 1000


class Replicas:
    """Of one incarnation of a broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.by_name: dict[str, Replica] = {}
        self._asking: set[int] = set()
        """Leaders that a fetch is on its way to."""
        self._was_known = False
        self._held: list[tuple[Fetch, Reply]] = []

    def begin(self) -> None:
        """Start what happens again and again."""
        self.broker.after(LAG_MAX_MS // 2, self._care)

    def _care(self) -> None:
        for replica in self.by_name.values():
            if replica.leader is not None:
                replica.advance()
                replica.propose()
        self.broker.after(LAG_MAX_MS // 2, self._care)

    # The deltas, as `ottla.broker.metadata_applier` takes them in.

    @property
    def _is_known(self) -> bool:
        broker = self.broker
        return broker.world.deciders.knows_this_life(
            broker.image, broker.number, broker.first_epoch
        )

    def known(self) -> None:
        """The controller may know this life now: roles begin, and what has no place here goes."""
        if self._was_known or not self._is_known:
            return
        self._was_known = True
        for topic in self.broker.image.topics.values():
            self.take_in(f"{topic.name}-{index}" for index in range(len(topic.partitions)))
        for name in [name for name in self.broker.disk.logs if name not in self.by_name]:
            self.broker.world.note(f"{self.broker.number} deletes {name}: it has no place here")
            self.broker.disk.forget(name)

    def take_in(self, names: Iterable[str]) -> None:
        """The deltas changed these partitions: take roles, drop what is another's now."""
        broker = self.broker
        for name in names:
            topic_name, _, index = name.rpartition("-")
            topic = broker.image.topic(topic_name)
            replica = self.by_name.get(name)
            if topic is None or (replica is not None and replica.topic_id != topic.topic_id):
                self._drop(name)
            if topic is None:
                continue
            state = topic.partitions[int(index)]
            if broker.number not in state.replicas:
                self._drop(name)
                continue
            if name not in self.by_name and not self._open(name, topic.topic_id):
                continue
            state = broker.world.deciders.in_this_life(
                state, broker.image, broker.number, broker.first_epoch
            )
            self.by_name[name].update(state)

    def _open(self, name: str, topic_id: UUID) -> bool:
        broker = self.broker
        log = broker.disk.logs.get(name)
        if log is not None and log.topic_id != topic_id:
            if not self._is_known:
                return False
            broker.disk.forget(name)
        log = broker.disk.open(name, topic_id)
        self.by_name[name] = Replica(broker, name, topic_id, log)
        return True

    def _drop(self, name: str) -> None:
        replica = self.by_name.pop(name, None)
        if replica is not None:
            replica.drop()
            if self._is_known:
                self.broker.disk.forget(name)

    # As leader.

    def fetched_by(self, request: Fetch, reply: Reply) -> None:
        """Answer a follower now if there is something to tell, else hold its fetch for a while."""
        answers = self._answers(request)
        if _tells_something(answers):
            reply(answers)
            return
        assert len(self._held) < _WAITING_MOST
        held = (request, reply)
        self._held.append(held)

        def give_up() -> None:
            if held in self._held:
                self._held.remove(held)
                reply(self._answers(request))

        self.broker.after(FETCH_WAIT_MS, give_up)

    def wake(self) -> None:
        """Something was appended or committed: those who wait may have their answer soon."""
        if self._held:
            self.broker.after(0, self._answer_held)

    def _answer_held(self) -> None:
        held, self._held = self._held, []
        for request, reply in held:
            reply(self._answers(request))

    def _answers(self, request: Fetch) -> dict[str, Fetched]:
        answers = {}
        for name, wanted in request.partitions.items():
            replica = self.by_name.get(name)
            answers[name] = (
                Fetched(ErrorCode.unknown_topic_id)
                if replica is None or replica.topic_id != wanted.topic_id
                else replica.fetched_by(request.replica, request.broker_epoch, wanted)
            )
        return answers

    def ends(self, request: Ends, reply: Reply) -> None:
        """Where a leader's log ends (ListOffsets of a follower)."""
        replica = self.by_name.get(request.partition)
        if replica is None or replica.leader is None or replica.epoch != request.leader_epoch:
            reply(None)
        else:
            reply(replica.log.end_offset)

    def produce(self, request: Produce, reply: Reply) -> None:
        """A producer's value."""
        replica = self.by_name.get(request.partition)
        if replica is None or replica.topic_id != request.topic_id:
            reply(Produced(ErrorCode.unknown_topic_id))
        else:
            replica.produce(request.value, request.acks, reply)

    def read(self, request: Read, reply: Reply) -> None:
        """A consumer's fetch."""
        replica = self.by_name.get(request.partition)
        if replica is None or replica.topic_id != request.topic_id:
            reply(ReadBack(ErrorCode.unknown_topic_id))
        elif replica.leader is None and (not request.from_follower or replica.follower is None):
            reply(ReadBack(ErrorCode.not_leader_or_follower))
        elif request.offset > replica.log.end_offset:
            reply(ReadBack(ErrorCode.offset_out_of_range))
        else:
            end = min(replica.high_watermark, request.offset + 50)
            entries = tuple(replica.log.entries[request.offset : end])
            reply(ReadBack(ErrorCode.none, entries, replica.epoch))

    def latest(self, request: Latest, reply: Reply) -> None:
        """The latest offset, unless this leader cannot know it yet (KIP-207)."""
        replica = self.by_name.get(request.partition)
        if replica is None or replica.leader is None:
            reply(Produced(ErrorCode.not_leader_or_follower))
        elif replica.high_watermark < replica.leader.epoch_start:
            reply(Produced(ErrorCode.offset_not_available))
        else:
            where = replica.high_watermark, replica.epoch, replica.topic_id
            reply(Produced(ErrorCode.none, *where))

    # As follower.

    def fetch(self) -> None:
        """Ask every leader that is not being asked."""
        wanted: dict[int, dict[str, Question]] = {}
        for name, replica in self.by_name.items():
            question = replica.asks()
            if question is not None and replica.follower is not None:
                wanted.setdefault(replica.follower.leader, {})[name] = question
        for leader, questions in wanted.items():
            if leader not in self._asking:
                self._ask(leader, questions)

    def _ask(self, leader: int, questions: dict[str, Question]) -> None:
        broker = self.broker
        self._asking.add(leader)
        asked = {name: self.by_name[name] for name in questions}
        partitions = {
            name: Wanted(*question[:3], asked[name].topic_id)
            for name, question in questions.items()
        }
        request = Fetch(broker.number, broker.broker_epoch, partitions)

        def answered(answers: dict[str, Fetched] | None) -> None:
            self._asking.discard(leader)
            if answers is None:
                broker.after(_BACKOFF_MS, self.fetch)
                return
            for name, fetched in answers.items():
                replica = self.by_name.get(name)
                if replica is not asked[name]:
                    continue  # another topic of this name
                if replica.answered(questions[name], fetched):
                    self._ask_ends(leader, name, questions[name])
                if replica.backs_off_until_ms > broker.schedule.now_ms:
                    broker.after(_BACKOFF_MS, self.fetch)
            self.fetch()

        broker.network.ask(broker, leader, request, _FETCH_TIMEOUT_MS, answered)

    def _ask_ends(self, leader: int, name: str, asked: Question) -> None:
        replica = self.by_name[name]
        # Meanwhile it is not asked for: the same question would have the same answer.
        replica.backs_off_until_ms = self.broker.schedule.now_ms + _BACKOFF_MS

        def answered(end_offset: int | None) -> None:
            replica.backs_off_until_ms = 0
            if end_offset is not None:
                replica.ends_answered(asked, end_offset)
            self.fetch()

        request = Ends(name, asked.leader_epoch)
        self.broker.network.ask(self.broker, leader, request, _FETCH_TIMEOUT_MS, answered)


def _tells_something(answers: dict[str, Fetched]) -> bool:
    return any(each.code or each.entries or each.diverging for each in answers.values())
