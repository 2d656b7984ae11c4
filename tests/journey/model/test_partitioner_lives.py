"""Journeys credit a partition to the partitioner that chose it, and untruths about it are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.journey.model import partitioner_lives
from tests.journey.model.partitioner_lives import live_partitioner
from tests.journey.model.statements import UntrueError

from ottla.journey import partitioner
from ottla.records.murmur2 import murmur2
from ottla.tracing.near_keys import near_keys

LIVES: Final = 10
Plant = Callable[[pytest.MonkeyPatch], None]


def test_how_a_partition_was_chosen_is_told_truly(tmp_path: Path) -> None:
    for seed in range(LIVES):
        live_partitioner(seed, tmp_path)


def one_key_decides(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partitioner, "COINCIDENCE", 2)
    patch.setattr(partitioner_lives, "near_keys", _no_keys)


async def _no_keys(*_: Any) -> frozenset[bytes]:
    return frozenset()


def keys_of_every_producer(patch: pytest.MonkeyPatch) -> None:
    of_one = near_keys

    async def every(log: Any, offset: int, _: int) -> frozenset[bytes]:
        found = [await of_one(log, offset, producer) for producer in range(5)]
        return frozenset().union(*found)

    patch.setattr(partitioner_lives, "near_keys", every)


def a_hash_with_its_sign(patch: pytest.MonkeyPatch) -> None:
    with_sign = {"murmur2": lambda key, count: murmur2(key) % count}
    patch.setattr(partitioner, "_PARTITIONERS", {**partitioner._PARTITIONERS, **with_sign})


@pytest.mark.parametrize("plant", [one_key_decides, keys_of_every_producer, a_hash_with_its_sign])
def test_a_planted_untruth_is_found(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch)

    def lives() -> None:
        for seed in range(LIVES):
            live_partitioner(seed, tmp_path)

    with pytest.raises(UntrueError):
        lives()
