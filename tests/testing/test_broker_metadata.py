"""What a broker's metadata lacks, compared with the actual state."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.messages import messages_of
from ottla.testing import broker_metadata
from ottla.testing.broker_metadata import KnownPartition, not_yet_known, partitions_known_to
from ottla.testing.broker_request import NoResponseError

ACTUAL = {
    ("flights", 0): KnownPartition(1, 4, frozenset({1, 2})),
    ("flights", 1): KnownPartition(2, 0, frozenset({1, 2})),
}


def respond(patch: pytest.MonkeyPatch, *partitions: tuple[int, int, int, tuple[int, ...]]) -> None:
    """The broker knows these: index, leader, leader epoch, in sync."""
    build = messages_of(broker_metadata.METADATA, 9)
    topic = build.MetadataResponseTopic(
        name="flights",
        partitions=tuple(
            build.MetadataResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=(1, 2),
                isr_nodes=isr,
                offline_replicas=(),
            )
            for index, leader, epoch, isr in partitions
        ),
    )
    response = build.MetadataResponse(brokers=(), topics=(topic,))

    def ask(bootstrap: str, request: Any, timeout_s: float) -> Any:
        assert [each.name for each in request.topics] == ["flights"]
        return response

    patch.setattr(broker_metadata, "ask_broker", ask)


def test_a_broker_that_knows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    respond(monkeypatch, (1, 2, 0, (2, 1)), (0, 1, 4, (1, 2)))
    assert partitions_known_to("b:1", ["flights"]) == ACTUAL
    assert not_yet_known("b:1", ["flights"], ACTUAL) == []


@pytest.mark.parametrize("first", [(0, 2, 4, (1, 2)), (0, 1, 3, (1, 2)), (0, 1, 4, (1,))])
def test_an_older_leader_epoch_or_isr_is_named(
    monkeypatch: pytest.MonkeyPatch, first: tuple[int, int, int, tuple[int, ...]]
) -> None:
    respond(monkeypatch, first, (1, 2, 0, (1, 2)))
    (line,) = not_yet_known("b:1", ["flights"], ACTUAL)
    assert line.startswith("flights-0: b:1 knows KnownPartition(")


def test_an_unknown_partition_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    respond(monkeypatch, (0, 1, 4, (1, 2)))
    (line,) = not_yet_known("b:1", ["flights"], ACTUAL)
    assert line.startswith("flights-1: b:1 knows None, it is KnownPartition(leader=2")


def test_a_broker_that_does_not_respond_knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> Any:
        raise NoResponseError("no response from b:1: timed out")

    monkeypatch.setattr(broker_metadata, "ask_broker", silent)
    assert not_yet_known("b:1", ["flights"], ACTUAL) == ["no response from b:1: timed out"]
