"""When a stray folder may become its partition's log again, and when it would destroy records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from ottla.cluster.stray_adoption import Adopted, AdoptionRefusedError, adopt
from ottla.controller import layout
from ottla.controller.image import PartitionState
from ottla.controller.layout import Assignment
from ottla.controller.loading import first_writes
from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.tree import Coordination, Create
from ottla.log.checkpoint import parse_offsets, write_offsets
from ottla.log.partition_metadata import make_folder, read_topic_id
from ottla.storage.checkpoint_files import LOG_STARTS, RECOVERY_POINTS
from ottla.storage.stray_folder import StoredLog, read_stray, stray_folders, write_note

TOPIC_ID, OTHER = UUID(int=9), UUID(int=8)


@pytest.fixture
async def session() -> AsyncIterator[Coordination]:
    tree = EmbeddedTree(None)
    session = await tree.connect()
    await session.multi(first_writes({}, "cluster"))
    yield session
    await tree.close()


async def topic(session: Coordination, state: PartitionState, topic_id: UUID = TOPIC_ID) -> None:
    assignment = Assignment(state.replicas)
    await session.multi(
        [
            Create(layout.topic_path("t"), layout.write_topic(topic_id, [assignment])),
            Create(layout.partitions_path("t")),
            Create(layout.partition_path("t", 0)),
            Create(layout.state_path("t", 0), layout.write_state(state, 0)),
        ]
    )


def state(*replicas: int, isr: tuple[int, ...], epoch: int = 2) -> PartitionState:
    return PartitionState(isr[0] if isr else -1, epoch, replicas, isr, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / f"t-0.{'0' * 32}-stray"
    make_folder(str(folder), TOPIC_ID)
    (folder / f"{0:020d}.log").write_bytes(b"records")
    write_note(str(folder), "t", 0, why="a reason", at_ms=7, log_start_offset=4)
    return folder


async def adopted(session: Coordination, folder: Path, *, alone: bool = False) -> Any:
    stray = read_stray(str(folder))
    assert stray is not None
    return await adopt(
        session,
        str(folder.parent),
        1,
        stray,
        StoredLog(4, 9, 6),
        may_create=list(stray_folders(str(folder.parent))) if alone else None,
        partitions=None,
        random=Random(1),
    )


@pytest.mark.parametrize("topic_id", [TOPIC_ID, OTHER])
@pytest.mark.parametrize(("epoch", "after"), [(2, 7), (8, 9)])
async def test_the_partition_gets_an_epoch_above_those_of_the_log(
    session: Coordination, folder: Path, topic_id: UUID, epoch: int, after: int
) -> None:
    await topic(session, state(1, isr=(1,), epoch=epoch), topic_id)
    write_offsets(f"{folder.parent}/{RECOVERY_POINTS}", {("t", 0): 0, ("u", 0): 3})
    (folder.parent / "t-0").mkdir()
    (folder.parent / "t-0" / f"{0:020d}.log").touch()
    assert await adopted(session, folder) == Adopted("t", 0, None)
    target = folder.parent / "t-0"
    assert not folder.exists()
    assert (target / f"{0:020d}.log").read_bytes() == b"records"
    assert read_topic_id(str(target)) == topic_id
    assert parse_offsets(
        (folder.parent / RECOVERY_POINTS).read_bytes(), RECOVERY_POINTS
    ).by_partition == {("u", 0): 3}
    assert parse_offsets((folder.parent / LOG_STARTS).read_bytes(), LOG_STARTS).by_partition == {
        ("t", 0): 4
    }
    node = await session.get(layout.state_path("t", 0))
    found = layout.read_state("", node.data, node.version, Assignment((1,)))
    assert (found.leader, found.leader_epoch, found.isr) == (1, after, (1,))


@pytest.mark.parametrize(
    ("found", "topic_id", "why"),
    [
        (state(1, 2, isr=(1, 2)), TOPIC_ID, "t-0 is on other brokers"),
        (state(1, 2, isr=(2,)), TOPIC_ID, "t-0 is on other brokers"),
        (state(2, 3, isr=(2, 3)), TOPIC_ID, "t-0 is on other brokers"),
        (state(1, 2, isr=(1,)), OTHER, "other replicas may have other records"),
        (None, TOPIC_ID, "the cluster has no topic t"),
    ],
)
async def test_a_folder_that_others_would_overwrite_is_refused(
    session: Coordination, folder: Path, found: PartitionState | None, topic_id: UUID, why: str
) -> None:
    if found is not None:
        await topic(session, found, topic_id)
    before = await session.read_tree("/")
    with pytest.raises(AdoptionRefusedError, match=why):
        await adopted(session, folder)
    assert folder.exists()
    assert await session.read_tree("/") == before


async def test_a_replica_that_alone_is_in_sync_gets_its_records_back(
    session: Coordination, folder: Path
) -> None:
    await topic(session, state(1, 2, isr=(1,)))
    await adopted(session, folder)
    assert (folder.parent / "t-0").exists()


async def test_a_topic_that_is_created_is_no_longer_noted_as_deleted(
    session: Coordination, folder: Path
) -> None:
    """The operator decides; the next deletion of the topic is noted again."""
    note = layout.deletion_path(TOPIC_ID)
    await session.multi([Create(note, layout.write_deletion("t"))])
    done = await adopted(session, folder, alone=True)
    assert done.made_partitions == 1
    assert await session.exists(note) is None
    node = await session.get(layout.topic_path("t"))
    assert layout.read_topic("t", node.data) == (TOPIC_ID, (Assignment((1,)),))
