"""Who may commit for a streams group. Kafka's StreamsGroupTest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.groups.streams.world import PLAIN

from ottla.groups.offsets.commit import OffsetToCommit, check_streams
from ottla.groups.settings import GroupSettings
from ottla.groups.streams.commit import had_since, late_member
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.tasks import HeldTasks
from ottla.groups.streams.written import current_record, member_record, topology_record
from ottla.protocol.errors import ApiError, ErrorCode

MEMBER = Member("m", epoch=10, previous_epoch=9, assigned=HeldTasks({"0": {0: 5, 1: 10}}))


@pytest.fixture
def group() -> StreamsGroup:
    group = StreamsGroup("g")
    for record in (
        topology_record("g", PLAIN),
        member_record("g", MEMBER),
        current_record("g", MEMBER),
    ):
        group.apply(record)
    return group


STALE, GENERATION = ErrorCode.stale_member_epoch, ErrorCode.illegal_generation


@pytest.mark.parametrize(
    ("version", "is_transactional", "code"),
    [(9, False, STALE), (5, True, GENERATION), (6, True, STALE)],
)
def test_what_a_late_one_hears(
    group: StreamsGroup, version: int, is_transactional: bool, code: ErrorCode
) -> None:
    """Transactions know of epochs since version 6 (KIP-1319)."""

    def commit(epoch: int, partition: int) -> None:
        request: Any = SimpleNamespace(generation=epoch, member_id="m", group_instance_id=None)
        offset = OffsetToCommit("t", None, partition, 1, -1, "")
        check_streams(
            group, request, version, [offset], GroupSettings(), is_transactional=is_transactional
        )

    commit(10, 7)
    commit(9, 0)
    for epoch, partition in ((11, 0), (9, 1), (9, 7)):
        with pytest.raises(ApiError) as caught:
            commit(epoch, partition)
        assert caught.value.code is code


def test_who_need_not_be_a_member(group: StreamsGroup) -> None:
    assert late_member(StreamsGroup("h"), "", None, -1, version=9) is None
    assert late_member(group, "", None, -1, version=6, is_transactional=True) is None
    with pytest.raises(ApiError, match="not a member"):
        late_member(group, "", None, -1, version=9)
    assert not had_since(group, MEMBER, 10, "other", 0)
