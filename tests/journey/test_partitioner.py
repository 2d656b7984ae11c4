"""Vectors are those of the FNV page."""

import zlib

import pytest

from ottla.journey.partitioner import explain_choice, fnv1a, likely_partitions
from ottla.journey.words.partition import format_choice
from ottla.records.murmur2 import murmur2


@pytest.mark.parametrize(
    ("data", "hashed"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)]
)
def test_fnv1a(data: bytes, hashed: int) -> None:
    assert fnv1a(data) == hashed


KEYS = [f"key-{number}".encode() for number in range(1000)]


def of_murmur(key: bytes, count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % count


def test_each_partitioner_is_recognised() -> None:
    key = b"N14228"
    by_crc = zlib.crc32(key) % 1000
    assert explain_choice(key, of_murmur(key, 1000), 1000).matches == ("murmur2",)
    assert explain_choice(key, by_crc, 1000).matches == ("crc32",)
    neither = next(at for at in range(1000) if not explain_choice(key, at, 1000).matches)
    told = explain_choice(key, neither, 1000)
    assert format_choice(told).startswith(
        "set by the producer, or by a partitioner that Ottla does not know"
    )
    assert not told.certain


def test_saramas_is_recognised() -> None:
    key = b"foobar"
    # 0xBF9CF968 is below zero as a signed number.
    assert explain_choice(key, (2**32 - 0xBF9CF968) % 1000, 1000).matches == ("fnv1a",)


def test_one_key_is_not_enough() -> None:
    key = next(key for key in KEYS if of_murmur(key, 3) == 1 != zlib.crc32(key) % 3)
    choice = explain_choice(key, 1, 3)
    assert "murmur2" in choice.matches
    assert not choice.certain
    assert format_choice(choice).endswith(
        "chooses it for this key; there is no other near it to compare"
    )


def test_a_partitioner_that_many_keys_agree_with_is_certain() -> None:
    near = [key for key in KEYS if zlib.crc32(key) % 3 == 1]
    choice = explain_choice(near[0], 1, 3, near)
    assert choice.certain
    assert (
        format_choice(choice)
        == f"crc32 (librdkafka's default) chooses it for all {len(near)} keys near it"
    )
    assert (choice.keys, choice.agreeing["crc32"]) == (len(near), len(near))
    assert choice.agreeing["murmur2"] < len(near)


def test_explicit_partitions_are_credited_to_nobody() -> None:
    """Of 1,000 keys that were put somewhere, some 581 were said to be a partitioner's."""
    by_place = {place: KEYS[place::3] for place in range(3)}
    told = [explain_choice(key, place, 3, near) for place, near in by_place.items() for key in near]
    assert not any(choice.certain for choice in told)
    assert all(format_choice(choice).startswith("set by the producer") for choice in told)
    assert sum(bool(choice.matches) for choice in told) > 500


def test_several_partitioners_that_agree_are_all_named() -> None:
    both = [key for key in KEYS if of_murmur(key, 3) == 2 == zlib.crc32(key) % 3]
    choice = explain_choice(both[0], 2, 3, both[1:20])
    assert choice.matches[:2] == ("murmur2", "crc32")
    assert not choice.certain
    defaults = "murmur2 (Java's default) and crc32 (librdkafka's default)"
    assert format_choice(choice) == f"{defaults} choose it for all 20 keys near it"


def test_few_keys_are_too_few() -> None:
    few = [key for key in KEYS if of_murmur(key, 3) == 0][:3]
    choice = explain_choice(few[0], 0, 3, few)
    assert not choice.certain
    assert format_choice(choice).endswith("chooses it for all 3 keys near it, which may be chance")
    other = next(
        key
        for key in KEYS
        if all(
            each not in explain_choice(key, 0, 3).matches for each in ("murmur2", "crc32", "fnv1a")
        )
    )
    assert "no default one chooses it for all 4 keys" in format_choice(
        explain_choice(other, 0, 3, few)
    )


def test_no_key_one_partition_and_an_empty_key() -> None:
    assert explain_choice(None, 1, 3).matches == ()
    assert "no key" in format_choice(explain_choice(None, 1, 3))
    assert format_choice(explain_choice(b"k", 0, 1)) == "the topic has one partition"
    assert "crc32" not in explain_choice(b"", 0, 3).matches


def test_likely_partitions_are_all_with_the_likely_first() -> None:
    key = b"N14228"
    order = likely_partitions(key, 50)
    assert sorted(order) == list(range(50))
    assert order[0] == (murmur2(key) & 0x7FFFFFFF) % 50
    assert order[1] == zlib.crc32(key) % 50


def test_the_partitioner_of_other_records_comes_first() -> None:
    key, count = b"N14228", 50
    others = [b"%d" % number for number in range(4)]
    by_crc32 = [(each, zlib.crc32(each) % count) for each in others]
    assert likely_partitions(key, count, by_crc32)[0] == zlib.crc32(key) % count
    # Those of one partitioner are more than those of another.
    mixed = [*by_crc32[:1], *((each, (murmur2(each) & 0x7FFFFFFF) % count) for each in others)]
    assert likely_partitions(key, count, mixed)[0] == (murmur2(key) & 0x7FFFFFFF) % count
    # None of them has chosen these.
    assert likely_partitions(key, count, [(b"x", 49)]) == likely_partitions(key, count)
