"""What dead letters say, and which topics take them (KIP-1191)."""

import pytest

from ottla.records.header import read_header
from ottla.records.iterate import iterate_records
from ottla.share.dead_letter import MAX_RECORDS, Origin, Wanted, pack, refusal
from ottla.share.record_state import Cause
from ottla.share.share_partition import Letter

ORIGIN = Origin("workers", "orders", 3)
LETTERS = [Letter(5, 6, 2, Cause.REJECTED), Letter(9, 9, 5, Cause.DELIVERED_TOO_OFTEN)]
GOOD = Wanted("dlq.orders", True, True, False, "dlq.")


def read(batch: bytes) -> list[dict[str, bytes | None]]:
    found = []
    for record in iterate_records(batch):
        headers: dict[str, bytes | None] = dict(record.headers)
        found.append({"key": record.key, "value": record.value, **headers})
    return found


def test_a_dead_letter_has_kafkas_headers() -> None:
    packed = pack(ORIGIN, LETTERS, 5, 99, {6: (b"k", b"v"), 9: (None, b"")}, 1_000, 10_000)
    assert (packed.size, packed.next_offset) == (3, None)
    header = read_header(packed.batch)
    assert (header.count, header.base_timestamp, header.max_timestamp) == (3, 1_000, 1_000)
    common = {
        "__dlq.errors.topic": b"orders",
        "__dlq.errors.partition": b"3",
        "__dlq.errors.group": b"workers",
    }
    rejected = {
        "__dlq.errors.delivery.count": b"2",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    too_often = {
        "__dlq.errors.delivery.count": b"5",
        "__dlq.errors.message": b"Offset delivery count exceeded the threshold.",
    }
    assert read(packed.batch) == [
        {"key": None, "value": None, "__dlq.errors.offset": b"5", **common, **rejected},
        {"key": b"k", "value": b"v", "__dlq.errors.offset": b"6", **common, **rejected},
        {"key": None, "value": b"", "__dlq.errors.offset": b"9", **common, **too_often},
    ]
    names = [name for name, _ in next(iterate_records(packed.batch)).headers]
    assert [name.removeprefix("__dlq.errors.") for name in names] == [
        "topic", "partition", "offset", "group", "delivery.count", "message"
    ]  # fmt: skip


def test_a_batch_is_within_the_limit_of_the_topic() -> None:
    contents = {5: (None, b"x" * 300), 6: (None, b"y" * 300)}
    first = pack(ORIGIN, LETTERS, 5, 99, contents, 0, 600)
    assert (first.size, first.next_offset) == (1, 6)
    assert len(first.batch) <= 600
    rest = pack(ORIGIN, LETTERS, 6, 99, contents, 0, 800)
    assert (rest.size, rest.next_offset) == (2, None)


def test_a_record_that_is_too_large_comes_without_its_value() -> None:
    packed = pack(ORIGIN, LETTERS, 5, 99, {5: (b"k", b"x" * 1_000)}, 0, 600)
    found = read(packed.batch)
    assert (found[0]["key"], found[0]["value"]) == (None, None)
    # Without the value it is written, whatever the limit.
    assert pack(ORIGIN, LETTERS, 9, 99, {}, 0, 100).size == 1


def test_a_batch_ends_with_what_was_read() -> None:
    packed = pack(ORIGIN, LETTERS, 5, 5, {5: (b"k", b"v")}, 0, 10_000)
    assert (packed.size, packed.next_offset) == (1, 6)
    packed = pack(ORIGIN, [Letter(0, 5_000, 1, Cause.REJECTED)], 3, 9_999, {}, 0, 1 << 20)
    assert (packed.size, packed.next_offset) == (MAX_RECORDS, MAX_RECORDS + 3)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (GOOD, None),
        (GOOD._replace(exists=False, is_allowed=False, may_create=True), None),
        (GOOD._replace(topic="dead", prefix=""), None),
        (GOOD._replace(topic=""), "Configured DLQ topic name in share group: g is empty."),
        (GOOD._replace(topic="__x", prefix=""), "cannot start with __, topic: __x."),
        (GOOD._replace(is_allowed=False), "DLQ is not enabled on configured DLQ topic"),
        (GOOD._replace(exists=False, is_allowed=False), "does not exist and auto create is"),
        (GOOD._replace(topic="dead"), "does not comply with the DLQ topic prefix"),
    ],
)
def test_which_topics_take_them(wanted: Wanted, text: str | None) -> None:
    found = refusal("g", wanted)
    assert found is None if text is None else text in str(found)
