"""The violations that the invariants find, and the losses that they allow."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from simulation.invariants import Account, Invariants, check_epochs
from simulation.violation import Violation

from ottla.controller import layout
from ottla.coordination.tree import TreeNode

TOPIC = UUID(int=7)


def made(*, unclean: bool = False) -> Invariants:
    invariants = Invariants({}, lambda name: unclean, lambda text: None, None)
    invariants.written(layout.CONTROLLER_EPOCH, TreeNode(b"3", 0))
    content = layout.write_topic(TOPIC, [layout.Assignment((1, 2))])
    invariants.written(layout.topic_path("t"), TreeNode(content, 0))
    return invariants


def write(
    invariants: Invariants, leader: int, epoch: int, isr: tuple[int, ...], controller: int = 3
) -> None:
    state = {"leader": leader, "leader_epoch": epoch, "controller_epoch": controller, "isr": isr}
    data = json.dumps({"version": 1, **state}).encode()
    invariants.written(layout.state_path("t", 0), TreeNode(data, epoch))


def test_each_epoch_has_one_leader() -> None:
    invariants = made()
    write(invariants, 1, 0, (1, 2))
    write(invariants, 2, 1, (2,))
    with pytest.raises(Violation, match="has the leaders 2 and 1"):
        write(invariants, 1, 1, (1,))


def test_a_leader_is_in_sync_and_its_epoch_never_decreases() -> None:
    invariants = made()
    with pytest.raises(Violation, match="leader 3 of the in-sync"):
        write(invariants, 3, 0, (1, 2))
    invariants = made()
    write(invariants, 1, 4, (1, 2))
    with pytest.raises(Violation, match="leader epoch 4 became 3"):
        write(invariants, 2, 3, (2,))


def test_a_deposed_controller_does_not_write() -> None:
    with pytest.raises(Violation, match="a controller of epoch 2 wrote"):
        write(made(), 1, 0, (1, 2), controller=2)


def test_an_acknowledged_record_must_be_committed() -> None:
    invariants = made()
    write(invariants, 1, 0, (1, 2))
    with pytest.raises(Violation, match="is not committed"):
        invariants.acknowledged("t", 0, 0, 99)
    with pytest.raises(Violation, match="read at 0 what is not committed"):
        invariants.read("t", 0, 0, 1, 99)


def test_an_unclean_election_may_lose_earlier_acknowledged_records() -> None:
    invariants = made(unclean=True)
    write(invariants, 1, 0, (1,))
    write(invariants, 2, 1, (2,))
    invariants.acknowledged("t", 0, 0, 99)
    invariants.read("t", 0, 0, 1, 99)


def test_the_latest_offset_never_decreases() -> None:
    invariants = made()
    write(invariants, 1, 0, (1, 2))
    invariants.latest("t", 0, 5, 0)
    invariants.latest("t", 0, 7, 0)
    with pytest.raises(Violation, match="went back to 6"):
        invariants.latest("t", 0, 6, 0)


def test_a_deleted_topic_is_not_checked() -> None:
    invariants = made()
    write(invariants, 1, 0, (1, 2))
    invariants.written(layout.deleted_topic_path("t"), TreeNode(b"", 0))
    invariants.acknowledged("t", 0, 0, 99)
    assert invariants.account("t", 0) is None


def test_a_topic_whose_deletion_was_refused_stays() -> None:
    invariants = made()
    invariants.deleting("t")
    invariants.deletion_refused("t", "not_controller")
    with pytest.raises(Violation, match="the last answer to its deletion was not_controller"):
        invariants.written(layout.deleted_topic_path("t"), TreeNode(b"", 0))
    invariants = made()
    invariants.deletion_refused("t", "not_controller")
    invariants.deleting("t")
    invariants.written(layout.deleted_topic_path("t"), TreeNode(b"", 0))
    invariants.deletion_refused("t", "not_controller")
    assert invariants.topic_id("t") is None


def test_an_answer_to_a_topic_that_was_made_again_is_not_judged() -> None:
    invariants = made()
    write(invariants, 1, 0, (1, 2))
    invariants.acknowledged("t", 0, 0, 99, UUID(int=6))
    with pytest.raises(Violation, match="is not committed"):
        invariants.acknowledged("t", 0, 0, 99, TOPIC)


def test_an_offset_has_one_batch_in_an_epoch() -> None:
    account = Account("t-0")
    check_epochs(account, 1, [(0, 0, 11), (0, 1, 12), (1, 1, 13)])
    check_epochs(account, 2, [(0, 0, 11)])
    with pytest.raises(Violation, match="2 has another batch at 1 in epoch 0"):
        check_epochs(account, 2, [(0, 1, 14)])
