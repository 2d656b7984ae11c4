"""Keeping the offsets of groups up, without a cluster. With two: `test_mirror.py`."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.admin.committed_offsets import Commit
from ottla.client.errors import Needs, RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import group_offsets
from ottla.mirroring.events import Event
from ottla.mirroring.group_offsets import GroupOffsets
from ottla.mirroring.offset_map import OffsetMap, Run
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.topic_plan import SourceTopic
from ottla.protocol.errors import ErrorCode

PARTITION = TopicPartition("t", 0)
MIRRORED = {"t": SourceTopic("t", None, 1)}


class Cluster:
    """One side: its groups by name with their commits. `hidden`: those that the client may not
    see.
    """

    def __init__(self, groups: dict[str, int], hidden: str = "") -> None:
        self.groups = groups
        self.hidden = hidden
        self.set: dict[str, int] = {}

    @contextmanager
    def asked(self) -> Any:
        yield

    def check(self, group: str) -> None:
        if group == self.hidden:
            code = ErrorCode.group_authorization_failed
            raise RefusedError(f"see group {group!r}", code, None, Needs("Describe", group))


@pytest.fixture(autouse=True)
def questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answered by `Cluster`."""

    def listed(side: Cluster) -> list[Any]:
        return [SimpleNamespace(group=name) for name in side.groups]

    def described(side: Cluster, names: list[str]) -> dict[str, Any]:
        for name in names:
            side.check(name)
        return {}

    def commits(side: Cluster, name: str) -> dict[TopicPartition, Commit]:
        side.check(name)
        offset = side.groups.get(name)
        return {} if offset is None else {PARTITION: Commit(offset, "", -1)}

    def commit(side: Cluster, name: str, offsets: dict[TopicPartition, int], _texts: Any) -> Any:
        side.set[name] = offsets[PARTITION]
        return {}

    monkeypatch.setattr(group_offsets, "listed_groups", listed)
    monkeypatch.setattr(group_offsets, "described_groups", described)
    monkeypatch.setattr(group_offsets, "commits_of", commits)
    monkeypatch.setattr(group_offsets, "commit_offsets", commit)
    for name in ("stable_offsets", "end_offsets"):
        monkeypatch.setattr(group_offsets, name, lambda _side, some: dict.fromkeys(some, 100))


def kept_up(source: Cluster, target: Cluster) -> list[Event]:
    known = OffsetMap()
    known.begin(0, 0)
    known.extend([Run(0, 10, 50)])
    told: list[Event] = []
    here: Any = source
    there: Any = target
    reader: Any = SimpleNamespace(maps={PARTITION: known}, read_to=lambda _end: None)
    keeping = GroupOffsets(MirrorSpec(), here, there, reader, lambda _name: True, told.append)
    for _ in range(2):
        keeping.keep_up(MIRRORED)
    return told


def test_offsets_are_translated() -> None:
    target = Cluster({})
    assert kept_up(Cluster({"a": 1, "b": 2}), target) == []
    assert target.set == {"a": 11, "b": 12}


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_group_that_must_not_be_seen_holds_up_no_other(side: str) -> None:
    source, target = Cluster({"a": 1, "b": 2, "c": 3}), Cluster({})
    (source if side == "source" else target).hidden = "b"
    (event,) = kept_up(source, target)
    assert target.set == {"a": 11, "c": 13}
    assert event.text == (
        "Group b is not kept up: cannot see group 'b': group authorization failed."
    )
