"""OffsetFetch in all its versions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch

OK = ErrorCode.none
TOPIC_ID = UUID(int=7)


async def fetch(
    api: Any, version: int, topics: tuple[Any, ...] | None, group: str = "g", **fields: object
) -> Any:
    """The answer for one group, whatever the version's form."""
    if version < 8:
        return await api.ask("offset_fetch", version, group_id=group, topics=topics, **fields)
    asked = api.struct("OffsetFetchRequestGroup", 9, version, group_id=group, topics=topics)
    answer = await api.ask("offset_fetch", version, groups=(asked,), **fields)
    (found,) = answer.groups
    assert found.group_id == group
    return found


def topic(api: Any, version: int, name: str = "t", topic_id: UUID | None = TOPIC_ID) -> Any:
    fields = {"name": name, "partition_indexes": (0, 1)}
    if version < 8:
        return api.struct("OffsetFetchRequestTopic", 9, version, **fields)
    return api.struct("OffsetFetchRequestTopics", 9, version, topic_id=topic_id, **fields)


def offsets(found: Any) -> list[tuple[int, int, str]]:
    (each,) = found.topics
    return [(one.partition_index, one.committed_offset, one.metadata) for one in each.partitions]


@pytest.mark.parametrize("version", range(1, 11))
async def test_committed_offsets_are_returned(api: Any, version: int) -> None:
    await api.commit(9, 42)
    found = await fetch(api, version, (topic(api, version),))
    assert offsets(found) == [(0, 42, "note"), (1, -1, "")]
    assert getattr(found, "error_code", OK) is OK
    assert getattr(found.topics[0].partitions[0], "committed_leader_epoch", 3) == 3


@pytest.mark.parametrize("version", range(1, 11))
async def test_an_unknown_group_is_not_an_error(api: Any, version: int) -> None:
    found = await fetch(api, version, (topic(api, version),), "unknown")
    assert offsets(found) == [(0, -1, ""), (1, -1, "")]
    assert {each.error_code for each in found.topics[0].partitions} == {OK}


@pytest.mark.parametrize("version", range(2, 11))
async def test_all_topics(api: Any, version: int) -> None:
    await api.commit(9, 42)
    found = await fetch(api, version, None)
    assert offsets(found) == [(0, 42, "note")]
    if version >= 10:
        assert found.topics[0].topic_id == TOPIC_ID
    assert (await fetch(api, version, None, "unknown")).topics == ()


async def test_many_groups(api: Any) -> None:
    await api.commit(9, 1)
    await api.commit(9, 2, group_id="h")
    asked = tuple(
        api.struct("OffsetFetchRequestGroup", 9, 9, group_id=group, topics=None)
        for group in ("g", "h")
    )
    answer = await api.ask("offset_fetch", 9, groups=asked, require_stable=True)
    assert [offsets(group)[0][1] for group in answer.groups] == [1, 2]


@pytest.mark.parametrize("version", range(1, 11))
async def test_an_offset_that_a_transaction_may_change(api: Any, version: int) -> None:
    """KIP-447: only those who ask for stable offsets are made to wait."""
    await api.commit(9, 42)
    pending = OffsetToCommit("t", TOPIC_ID, 0, 50, 3, "note")
    await api.groups.commit_in_transaction(
        TransactionalCommitRequest("g", "id", ProducerEpoch(1, 0), -1, "", None, (pending,), 3)
    )
    for topics in ((topic(api, version),), None) if version >= 2 else ((topic(api, version),),):
        found = await fetch(api, version, topics)
        assert offsets(found)[0] == (0, 42, "note")
        assert found.topics[0].partitions[0].error_code is OK
        if version >= 7:
            found = await fetch(api, version, topics, require_stable=True)
            assert getattr(found, "error_code", OK) is OK
            assert offsets(found)[0] == (0, -1, "")
            code = found.topics[0].partitions[0].error_code
            assert code is ErrorCode.unstable_offset_commit


async def test_an_unknown_topic_id(api: Any) -> None:
    topics = (topic(api, 10, topic_id=UUID(int=99)), topic(api, 10, topic_id=None))
    found = await fetch(api, 10, topics)
    for each in found.topics:
        assert {one.error_code for one in each.partitions} == {ErrorCode.unknown_topic_id}
        assert {one.committed_offset for one in each.partitions} == {-1}


async def test_offsets_of_a_topics_predecessor_do_not_count(api: Any) -> None:
    await api.commit(10, 42)
    fetched = api.shard.fetch("g", "t", UUID(int=1), (0,))
    assert fetched[0].offset == -1
    assert api.shard.fetch("g", "t", None, (0,))[0].offset == 42


@pytest.mark.parametrize("version", [1, 2, 7, 8, 10])
async def test_an_error_of_the_coordinator(
    api: Any, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(partition: int) -> None:
        raise ApiError(ErrorCode.coordinator_not_available)

    monkeypatch.setattr(api, "open", elsewhere)
    found = await fetch(api, version, (topic(api, version),))
    if version == 1:
        codes = {each.error_code for each in found.topics[0].partitions}
        assert codes == {ErrorCode.not_coordinator}
    else:
        assert (found.error_code, found.topics) == (ErrorCode.not_coordinator, ())


@pytest.mark.parametrize(
    ("version", "everything"), [(1, False), (7, False), (7, True), (8, False), (8, True)]
)
async def test_many_offsets_are_read_and_answered_in_parts(
    api: Any, version: int, everything: bool
) -> None:
    committed = tuple(OffsetToCommit("t", None, index, 7, -1, "") for index in range(15_000))
    await api.groups.commit(CommitRequest("g", -1, "", None, -1, committed, 9))
    name = "OffsetFetchRequestTopic" if version < 8 else "OffsetFetchRequestTopics"
    topics = tuple(
        api.struct(name, 9, version, name=topic, partition_indexes=tuple(range(count)))
        for topic, count in (("empty", 0), ("t", 20_000), ("other", 5_000))
    )
    found = await fetch(api, version, None if everything else topics)
    offsets_of = {
        each.name: [one.committed_offset for one in each.partitions] for each in found.topics
    }
    if everything:
        assert offsets_of == {"t": [7] * 15_000}
    else:
        there = [7] * 15_000 + [-1] * 5_000
        assert offsets_of == {"empty": [], "t": there, "other": [-1] * 5_000}
    assert api.most_calls < 60_000


async def test_an_error_of_many_partitions(api: Any) -> None:
    """Version 1 has no error for the whole response."""
    api.runtime.close()
    asked = api.struct(
        "OffsetFetchRequestTopic", 9, 1, name="t", partition_indexes=tuple(range(20_000))
    )
    found = await fetch(api, 1, (asked,))
    errors = {one.error_code for one in found.topics[0].partitions}
    assert errors == {ErrorCode.not_coordinator}
    assert api.most_calls < 60_000


async def test_a_group_that_is_repeated_is_fetched_once(api: Any) -> None:
    await api.commit(9, 42)
    groups = [
        api.struct("OffsetFetchRequestGroup", 9, 8, group_id=group, topics=None)
        for group in ("g", "other", "g")
    ]
    answer = await api.ask("offset_fetch", 8, groups=tuple(groups))
    found = [(group.group_id, group.error_code, len(group.topics)) for group in answer.groups]
    assert found == [("g", OK, 1), ("other", OK, 0), ("g", ErrorCode.invalid_request, 0)]
