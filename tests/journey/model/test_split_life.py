"""Whatever two partitions bring into one table: what a journey says of its rows is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.journey.model.split_life import live_split
from tests.journey.model.statements import UntrueError

from ottla.journey import explain, key_elsewhere
from ottla.journey.key_elsewhere import KeyElsewhere
from ottla.journey.moment import Document
from ottla.journey.table_rows import row_of
from ottla.tracing import key_search

LIVES: Final = 24
AT_ONCE: Final = 12
MORE: Final = 2000
FAILED: Final = (65,)
"""Lives in which a journey once said what is not true."""
SEEDS: Final = 60
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("first", range(0, LIVES, AT_ONCE))
def test_what_is_said_of_rows_is_true(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + AT_ONCE):
        live_split(seed, tmp_path)


@pytest.mark.parametrize("seed", FAILED)
def test_what_was_untrue_once(seed: int, tmp_path: Path) -> None:
    live_split(seed, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("first", range(LIVES, MORE, 250))
def test_what_is_said_of_rows_is_true_in_more_lives(first: int, tmp_path: Path) -> None:
    for seed in range(first, min(first + 250, MORE)):
        live_split(seed, tmp_path)


# Untruths to plant.


def one_partition_tells_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(explain, "across_partitions", key_elsewhere.across_partitions)
    patch.setattr(key_elsewhere, "is_asked", lambda to: False)


def what_was_removed_was_never_there(patch: pytest.MonkeyPatch) -> None:
    find = key_search.elsewhere_of

    def elsewhere(*args: Any) -> KeyElsewhere:
        return find(*args)._replace(removed=())

    patch.setattr(key_search, "elsewhere_of", elsewhere)


def a_column_orders_like_the_time(patch: pytest.MonkeyPatch) -> None:
    def row(to: Any, *more: Any) -> Document:
        return row_of(to._replace(order="timestamp") if to.order == "column" else to, *more)

    patch.setattr(explain, "row_of", row)


def a_tombstone_closes_nothing(patch: pytest.MonkeyPatch) -> None:
    """A version that another partition opened is not closed."""
    see = key_elsewhere.seen_across

    def seen(row: Document, also_in: Any, not_searched: Any) -> Document:
        return see(row, also_in, not_searched) | {"did": row["did"]}

    patch.setattr(key_elsewhere, "seen_across", seen)


PLANTED: Final[tuple[Plant, ...]] = (
    one_partition_tells_all,
    what_was_removed_was_never_there,
    a_column_orders_like_the_time,
    a_tombstone_closes_nothing,
)


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_untruth_is_found(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch)
    assert any(_is_found(seed, tmp_path) for seed in range(SEEDS))


def _is_found(seed: int, folder: Path) -> bool:
    try:
        live_split(seed, folder)
    except UntrueError:
        return True
    return False
