"""Positions as commits at the target."""

from __future__ import annotations

import json

import pytest

from ottla.mirroring.position import LastRecord, Origin, Position, read_position, written

OURS = Origin("id-1", "there-1", ("cluster",))


@pytest.mark.parametrize("last", [None, LastRecord(14, 3), LastRecord(15, 3)])
def test_positions_are_read_as_they_were_written(last: LastRecord | None) -> None:
    position = Position(15, OURS, last)
    assert read_position(15, position.epoch, written(position)) == position
    out = position._replace(is_left_out=True)
    assert read_position(15, position.epoch, written(out)) == out


def test_the_epoch_of_a_commit_is_that_of_the_record_just_before() -> None:
    assert Position(15, OURS, LastRecord(15, 3)).epoch == 3
    assert Position(15, OURS, LastRecord(14, 3)).epoch is None


def test_a_position_of_an_earlier_version() -> None:
    metadata = json.dumps({"topic_id": "id-1", "target_id": "there-1", "clusters": ["cluster"]})
    assert read_position(15, 3, metadata) == Position(15, OURS, LastRecord(15, 3))
    assert read_position(15, None, metadata) == Position(15, OURS)


def test_the_commit_of_another_program() -> None:
    for metadata in ("", "x", "[]", '{"topic_id": null, "target_id": null, "clusters": 1}'):
        assert read_position(15, 3, metadata) is None
    broken = json.loads(written(Position(15, OURS, LastRecord(14, 3)))) | {"last_record": 5}
    assert read_position(15, 3, json.dumps(broken)) is None
