"""Rates and buckets make of uses what Apache Kafka's classes make of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.quotas.rate import MAX_THROTTLE_MS, Rate, TokenBucket, Windows, in_ms

TRANSCRIPTS = Path(__file__).with_name("kafka_rates.txt")


def transcripts() -> Iterator[tuple[Windows, float, list[tuple[int, ...]]]]:
    for text in TRANSCRIPTS.read_text().split("windows ")[1:]:
        head, *lines = text.strip().splitlines()
        count, size_ms, limit = map(int, head.split())
        yield Windows(count, size_ms), limit, [tuple(map(int, line.split())) for line in lines]


@pytest.mark.parametrize(("windows", "limit", "uses"), list(transcripts()))
def test_as_apache_kafka(windows: Windows, limit: float, uses: list[tuple[int, ...]]) -> None:
    now_ms = 1_000_000
    rate, bucket = Rate(windows, now_ms + uses[0][0]), TokenBucket(windows, now_ms, limit)
    waits = []
    for gap_ms, value, _, _ in uses:
        now_ms += gap_ms
        rate.record(value, now_ms)
        bucket.record(value, limit, now_ms)
        waits.append((in_ms(rate.over(limit, now_ms)), in_ms(bucket.over(limit, now_ms))))
    assert len(uses) >= 100
    assert waits == [use[2:] for use in uses]


def test_after_all_windows_nothing_is_remembered() -> None:
    rate = Rate(Windows(11, 1_000), 0)
    rate.record(1_000_000, 0)
    assert not rate.is_like_new(1, 10_999)
    assert rate.is_like_new(1, 11_000)
    assert rate.total(11_000) == 0


def test_a_bucket_is_full_again_after_all_windows() -> None:
    bucket = TokenBucket(Windows(11, 1_000), 0, 2)
    bucket.record(22, 2, 0)
    assert bucket.over(2, 0) == 0
    assert not bucket.is_like_new(2, 10_999)
    assert bucket.is_like_new(2, 11_000)


def test_no_wait_is_longer_than_the_field_of_a_response() -> None:
    rate = Rate(Windows(11, 1_000), 0)
    rate.record(1e12, 0)
    assert in_ms(rate.over(1, 0)) == MAX_THROTTLE_MS
