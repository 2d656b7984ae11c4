"""Which deletions stay noted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.controller import deletion_notes, layout
from ottla.controller.deletion_notes import (
    are_too_many,
    deletion_note,
    forget_oldest,
    noted_ids,
    notes_by_age,
)
from ottla.coordination.tree import Delete
from ottla.protocol.kafka_uuid import uuid_text


def test_the_names_are_topic_ids_and_others_are_ignored() -> None:
    ids = [UUID(int=1), UUID(int=1 << 127)]
    assert noted_ids([*map(uuid_text, ids), "readme", "", "x" * 22]) >= set(ids)
    assert noted_ids(["readme", "", "ä"]) == frozenset()


def test_the_newest_notes_stay(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_notes, "MAX_NOTES", 3)
    monkeypatch.setattr(deletion_notes, "SLACK", 1)
    for number in (4, 2, 9, 7):
        world.write([deletion_note(f"t{number}", UUID(int=number))])
    notes = notes_by_age(world.tree())
    assert notes == [layout.deletion_path(UUID(int=number)) for number in (4, 2, 9, 7)]
    assert not are_too_many(notes)
    world.write([deletion_note("t5", UUID(int=5))])
    notes = notes_by_age(world.tree())
    assert are_too_many(notes)
    plan = forget_oldest(notes)
    assert plan.writes == (Delete(notes[0]), Delete(notes[1]))
    world.write(plan.writes)
    assert notes_by_age(world.tree()) == plan.reply == notes[2:]
