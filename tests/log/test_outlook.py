"""Which segments retention deletes soon."""

from __future__ import annotations

from dataclasses import replace

from ottla.log.config import LogConfig
from ottla.log.outlook import DAY_MS, Going, Piece, outlook

HOUR_MS = 3_600_000
NOW_MS = 100 * DAY_MS
FOREVER = replace(LogConfig(), retention_ms=-1, retention_bytes=-1)


def pieces(*ages_hours: int, size_bytes: int = 100) -> list[Piece]:
    return [
        Piece(10 * (number + 1), size_bytes, NOW_MS - hours * HOUR_MS)
        for number, hours in enumerate(ages_hours)
    ]


def test_by_time_the_newest_record_so_far_decides() -> None:
    config = replace(FOREVER, retention_ms=7 * DAY_MS)
    found = outlook(pieces(7 * 24 + 1, 7 * 24 - 5, 7 * 24 - 2, 1), config, NOW_MS, DAY_MS)
    assert found == [Going(10, 0), Going(20, 5 * HOUR_MS), Going(30, 5 * HOUR_MS)]
    found = outlook(pieces(7 * 24 - 1, 7 * 24 - 1, 7 * 24 - 9, 1), config, NOW_MS, DAY_MS)
    assert found == [Going(10, HOUR_MS), Going(20, HOUR_MS), Going(30, 9 * HOUR_MS)]
    assert outlook(pieces(7 * 24 - 30, 7 * 24 - 1), config, NOW_MS, DAY_MS) == []


def test_by_size_it_is_estimated_from_the_last_day() -> None:
    config = replace(FOREVER, retention_bytes=250)
    # 200 bytes came in the last day; without the first segment 300 are left, of 250.
    found = outlook(pieces(72, 48, 5, 1), config, NOW_MS, DAY_MS)
    assert found == [Going(10, 0), Going(20, DAY_MS // 4), Going(30, 3 * DAY_MS // 4)]
    assert outlook(pieces(72, 60, 50, 48), config, NOW_MS, DAY_MS) == [Going(10, 0)]
    roomy = replace(config, retention_bytes=10_000)
    assert outlook(pieces(72, 48, 5, 1), roomy, NOW_MS, DAY_MS) == []


def test_without_a_limit_nothing_goes() -> None:
    assert outlook(pieces(10_000, 1), FOREVER, NOW_MS, DAY_MS) == []
    assert outlook([], FOREVER, NOW_MS, DAY_MS) == []
