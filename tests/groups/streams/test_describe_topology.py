"""Descriptions of topologies: who is asked, what is kept, and what is refused (KIP-1331)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.groups.streams.test_shard import Story
from tests.groups.streams.world import stored

from ottla.groups.streams.describe_topology import DescriptionUpdate
from ottla.groups.streams.description import (
    MAX_DESCRIPTION_BYTES,
    Description,
    GlobalStore,
    Node,
    NodeKind,
    NodesOfSubtopology,
    decode,
    encode,
)
from ottla.groups.streams.requests import HeartbeatRequest
from ottla.protocol.errors import ApiError, ErrorCode

TEXTS = st.text(max_size=5)
NODES = st.builds(
    Node,
    TEXTS,
    st.sampled_from(NodeKind),
    st.lists(TEXTS, max_size=3).map(tuple),
    st.none() | TEXTS,
    st.lists(TEXTS, max_size=3).map(tuple),
    st.lists(TEXTS, max_size=3).map(tuple),
)
PARTS = st.builds(NodesOfSubtopology, TEXTS, st.lists(NODES, max_size=3).map(tuple))
DESCRIPTIONS = st.builds(
    Description,
    st.lists(PARTS, max_size=3).map(tuple),
    st.lists(st.builds(GlobalStore, NODES, NODES), max_size=2).map(tuple),
)
SOME = encode(Description((), ()))


@given(DESCRIPTIONS)
def test_bytes_and_back(description: Description) -> None:
    content = encode(description)
    assert decode(content) == description
    for end in range(len(content)):
        with pytest.raises(ValueError, match=r"."):
            decode(content[:end])


class Told(Story):
    def __init__(self) -> None:
        super().__init__()
        self.set_topic("t", 1)

    def request(self, client: str) -> HeartbeatRequest:
        return super().request(client)._replace(knows_descriptions=True)

    def is_asked(self, client: str) -> bool:
        result, _ = self.heartbeat(self.request(client))
        return result.is_to_describe

    def update(self, client: str, epoch: int = 0, content: bytes = SOME) -> str | None:
        update = DescriptionUpdate("g", client, epoch, content)
        (why_not, soft), _ = self.decide(lambda step: self.shard.describe_topology(update, step))
        self.shard.keep("g", soft)
        return why_not

    @property
    def kept(self) -> tuple[bytes | None, int, int]:
        assert stored(self.replayed()) == stored(self.shard), "the log says something else"
        group = self.shard.groups["g"]
        return group.description, group.described_epoch, group.undescribable_epoch


def test_one_member_is_asked_and_another_one_later() -> None:
    told = Told()
    told.do("join a plain")
    told.do("join b plain")
    assert not told.is_asked("a")
    assert not told.is_asked("b")
    told.now_ms += 30_000
    assert told.is_asked("b")
    told.now_ms += 59_999
    assert not told.is_asked("a")
    told.now_ms += 1
    assert told.is_asked("a")
    assert told.update("a") is None
    assert told.kept == (SOME, 0, -1)
    told.now_ms += 10_000_000
    assert not told.is_asked("b")
    epoch = told.shard.groups["g"].epoch
    told.restart()
    assert told.shard.describe("g").description == SOME
    assert told.shard.groups["g"].epoch == epoch, "nothing is assigned again"
    told.do("leave a")
    told.do("leave b")
    told.do("join b plain")
    assert told.kept == (SOME, 0, -1), "the topology is the same"
    told.do("leave b")
    told.do("remove")
    assert "g" not in told.shard.groups


def test_the_answer_of_a_join_asks() -> None:
    told = Told()
    request = told.request("a")._replace(
        epoch=0, rebalance_timeout_ms=1, topology=None, active={}, standby={}, warmup={}
    )
    story = Story()
    story.set_topic("t", 1)
    story.join("a", "plain")
    assert not story.heartbeat(story.request("a"))[0].is_to_describe, "an older client"
    asked = story.request("a")._replace(knows_descriptions=True)
    assert story.heartbeat(asked)[0].is_to_describe
    assert request.knows_descriptions


def test_one_that_is_too_large_is_not_asked_for_again() -> None:
    told = Told()
    told.do("join a plain")
    assert "10,000 names and 262,144 bytes" in str(
        told.update("a", content=bytes(MAX_DESCRIPTION_BYTES + 1))
    )
    kept: object = told.kept
    assert kept == (None, -1, 0)
    told.now_ms += 10_000_000
    assert not told.is_asked("a")
    assert told.update("a") is None
    assert told.kept == (SOME, 0, 0)


def test_who_may_not() -> None:
    told = Told()
    with pytest.raises(ApiError) as refused:
        told.update("a")
    assert refused.value.code is ErrorCode.group_id_not_found
    told.do("join a plain")
    with pytest.raises(ApiError) as refused:
        told.update("b")
    assert refused.value.code is ErrorCode.unknown_member_id
    with pytest.raises(ApiError, match="Topology epoch 1 does not match") as refused:
        told.update("a", epoch=1)
    assert refused.value.code is ErrorCode.invalid_request
    assert told.kept == (None, -1, -1)
