"""Groups that have not come to certain offsets, in parts."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinator.late_offsets import Late


@pytest.mark.parametrize("at_once", [1, 4, 10_000])
async def test_groups_that_are_late(
    bench: Any, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("ottla.coordinator.late_offsets.MAX_LOOKUPS_AT_ONCE", at_once)
    groups = bench.coordinator
    names = [f"g{number}" for number in range(9)]
    for number, name in enumerate(names):
        await groups.commit(bench.committing(number)._replace(group=name))
    assert await groups.late_offsets.count() == 9
    parts = [part async for part in groups.late_offsets.late({"t": {0: 7, 1: 7}, "u": {0: 9}})]
    found = sorted(each for part in parts for each in part)
    assert found == [Late(f"g{number}", "t", 0, number) for number in range(7)]
    if at_once == 1:
        assert len(parts) == 7
    assert [part async for part in groups.late_offsets.late({})] == []


async def test_a_partition_that_is_not_ready_is_left_out(bench: Any) -> None:
    groups = bench.coordinator
    await groups.commit(bench.committing(1))
    bench.close()
    assert await groups.late_offsets.count() == 0
    assert [part async for part in groups.late_offsets.late({"t": {0: 7}})] == []
