"""Proposals of in-sync sets to the controller, and its answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.cluster.alter_partition_sender import MAX_RETRY_MS, RETRY_MS, AlterPartitionSender
from ottla.controller.alter_partition import IsrAnswer
from ottla.controller.image import PartitionState
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode
from ottla.replication.leader import InSyncChange


class Proposer:
    """A fake partition: records the answers, and returns what to send again."""

    topic, index = "t", 0

    def __init__(self, *again: InSyncChange | None) -> None:
        self.answers: list[tuple[ErrorCode, PartitionState | None, InSyncChange]] = []
        self.again = list(again)
        """In order."""
        self.looked = asyncio.Event()

    def in_sync_answered(self, *answer: Any) -> None:
        self.answers.append(answer)

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        self.looked.set()
        return self.again.pop(0)

    @property
    def codes(self) -> list[ErrorCode]:
        return [code for code, _, _ in self.answers]


class Leader:
    """Broker 2, which is not the controller and leads one of topic t's partitions."""

    def __init__(self, neighbours: Any, first: Any, second: Any) -> None:
        self.neighbours, self.first, self.second = neighbours, first, second
        self.changes = AlterPartitionSender(
            second.registration, second.image, second.clock, second.client
        )
        self.topic = first.image.topics["t"]
        self.index = next(n for n, state in enumerate(self.topic.partitions) if state.leader == 2)
        self.epoch = second.registration.broker_epoch

    @property
    def state(self) -> PartitionState:
        state: PartitionState = self.first.image.topics["t"].partitions[self.index]
        return state

    def change(self, *isr: tuple[int, int], **but: Any) -> InSyncChange:
        given = {
            "topic_id": self.topic.topic_id,
            "index": self.index,
            "leader_epoch": self.state.leader_epoch,
            "partition_epoch": self.state.partition_epoch,
        }
        return InSyncChange(**{**given, **but}, isr=isr)


@pytest.fixture
async def leader(neighbours: Any, eventually: Any) -> AsyncIterator[Leader]:
    first, second = [await neighbours.start(number) for number in (1, 2)]
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    await first.controller.create_topics([NewTopic("t", 2, 2)])
    await eventually(lambda: "t" in second.image.topics)
    made = Leader(neighbours, first, second)
    made.changes.start()
    yield made
    await made.changes.close()


async def test_the_answer_is_the_current_state(leader: Leader, eventually: Any) -> None:
    proposer, change = Proposer(), leader.change((2, leader.epoch))
    leader.changes.propose(proposer, change)
    await eventually(lambda: proposer.answers)
    assert leader.state.isr == (2,)
    assert proposer.answers == [(ErrorCode.none, leader.state, change)]


async def test_each_of_many_has_its_own_answer(leader: Leader, eventually: Any) -> None:
    good, stale, restarted = Proposer(), Proposer(), Proposer()
    other_epoch = leader.first.registration.broker_epoch + 1_000
    other = leader.change((2, leader.epoch), index=1 - leader.index)
    leader.changes.propose(good, leader.change((2, leader.epoch)))
    leader.changes.propose(stale, other)
    await eventually(lambda: good.answers and stale.answers)
    assert good.answers[0][0] is ErrorCode.none
    assert stale.answers == [(ErrorCode.invalid_request, None, other)]
    again = leader.change((2, leader.epoch), (1, other_epoch))
    leader.changes.propose(restarted, again)
    await eventually(lambda: restarted.answers)
    assert restarted.answers == [(ErrorCode.ineligible_replica, None, again)]
    assert leader.state.isr == (2,)


async def test_a_proposal_is_sent_again_until_a_controller_answers(
    leader: Leader, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ottla.replication")
    reached = leader.neighbours.nodes.pop(1)
    proposer, change = Proposer(), leader.change((2, leader.epoch))
    leader.changes.propose(proposer, change)
    await eventually(lambda: caplog.text.count("in-sync changes: ") >= 2)
    assert proposer.answers == []
    leader.neighbours.nodes[1] = reached
    await eventually(lambda: proposer.answers)
    assert len(proposer.answers) == 1
    assert proposer.answers[0][1] == leader.state


async def test_a_proposal_of_a_former_incarnation_waits_for_the_new_registration(
    leader: Leader, eventually: Any
) -> None:
    registration, proposer = leader.second.registration, Proposer()
    registration.broker_epoch = leader.epoch - 1
    leader.changes.propose(proposer, leader.change((2, -1)))
    await eventually(lambda: not leader.changes._has_work.is_set())
    assert proposer.answers == []
    registration.broker_epoch = leader.epoch
    await eventually(lambda: proposer.answers)
    assert proposer.answers[0][0] is ErrorCode.none


async def test_an_inconclusive_answer_is_retried_for_that_partition_only(
    leader: Leader, eventually: Any
) -> None:
    """NOT_CONTROLLER for one partition: its leader knows more than the controller."""
    known = leader.change((2, leader.epoch))
    ahead = leader.change((2, leader.epoch), leader_epoch=leader.state.leader_epoch + 1)
    proposer, other = Proposer(ahead, ahead, known), Proposer()
    leader.changes.propose(proposer, ahead)
    strange = leader.change((2, leader.epoch), index=1 - leader.index)
    leader.changes.propose(other, strange)
    await eventually(lambda: len(proposer.answers) == 4)
    assert proposer.codes == [ErrorCode.not_controller] * 3 + [ErrorCode.none]
    assert leader.state.isr == (2,)
    # Finished: nothing is kept, and the other one, refused for good, was never sent again.
    assert leader.changes._unresolved == {}
    assert other.codes == [ErrorCode.invalid_request]


async def test_a_proposal_resolved_by_a_delta_is_not_sent_again(
    leader: Leader, eventually: Any
) -> None:
    ahead = leader.change((2, leader.epoch), leader_epoch=leader.state.leader_epoch + 1)
    proposer = Proposer(None)
    leader.changes.propose(proposer, ahead)
    await asyncio.wait_for(proposer.looked.wait(), 20)
    await eventually(lambda: leader.changes._unresolved == {})
    assert proposer.codes == [ErrorCode.not_controller]
    later = Proposer()
    leader.changes.propose(later, leader.change((2, leader.epoch)))
    await eventually(lambda: later.answers)
    assert (later.codes, proposer.again) == ([ErrorCode.none], [])


async def test_a_partition_missing_in_the_response_is_sent_again(
    leader: Leader, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, change = leader.first.controller, leader.change((2, leader.epoch))
    rightly = controller.alter_partitions

    async def silent(*_: Any) -> tuple[IsrAnswer, ...]:
        monkeypatch.setattr(controller, "alter_partitions", rightly)
        return ()

    monkeypatch.setattr(controller, "alter_partitions", silent)
    proposer = Proposer(change)
    leader.changes.propose(proposer, change)
    await eventually(lambda: len(proposer.answers) == 2)
    assert proposer.codes == [ErrorCode.unknown_server_error, ErrorCode.none]


async def test_the_pauses_grow_to_a_limit(leader: Leader) -> None:
    changes, pauses, key = leader.changes, [], (leader.topic.topic_id, leader.index)
    await changes.close()
    for _ in range(7):
        changes._answered(key, Proposer(), ErrorCode.not_controller)
        pauses.append(changes._unresolved[key].pause_ms)
    assert pauses == [RETRY_MS * 2**tries for tries in range(5)] + [MAX_RETRY_MS] * 2
    changes._answered(key, Proposer(), ErrorCode.fenced_leader_epoch)
    changes._answered(key, Proposer(), ErrorCode.request_timed_out)
    assert changes._unresolved[key].pause_ms == RETRY_MS
