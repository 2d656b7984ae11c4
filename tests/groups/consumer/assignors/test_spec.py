"""The order of topics."""

from __future__ import annotations

from uuid import UUID

from ottla.groups.consumer.assignors.spec import java_order


def test_topic_ids_are_in_javas_order() -> None:
    high, low = UUID(int=1 << 127), UUID(int=1)
    assert sorted([low, high], key=java_order) == [high, low]
