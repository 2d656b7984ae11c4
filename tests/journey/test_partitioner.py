"""Vectors are those of Kafka's UtilsTest and of the FNV page."""

import zlib

import pytest

from ottla.journey.partitioner import explain_choice, fnv1a, likely_partitions, murmur2


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_murmur2_is_javas(data, signed):
    assert murmur2(data) == signed % 2**32


@pytest.mark.parametrize(
    ("data", "hashed"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)]
)
def test_fnv1a(data, hashed):
    assert fnv1a(data) == hashed


def test_each_partitioner_is_recognised():
    key = b"N14228"
    by_murmur = (murmur2(key) & 0x7FFFFFFF) % 1000
    by_crc = zlib.crc32(key) % 1000
    assert explain_choice(key, by_murmur, 1000).matches == ("murmur2",)
    assert explain_choice(key, by_crc, 1000).matches == ("crc32",)
    neither = next(at for at in range(1000) if not explain_choice(key, at, 1000).matches)
    assert "no default partitioner" in explain_choice(key, neither, 1000).why


def test_sarama_is_recognised_if_no_other_is():
    key = b"foobar"
    # 0xBF9CF968 is below zero as a signed number.
    assert explain_choice(key, (2**32 - 0xBF9CF968) % 1000, 1000).matches == ("fnv1a",)


def test_several_that_agree_are_all_named():
    key = next(
        key
        for key in (f"key-{number}".encode() for number in range(1000))
        if (murmur2(key) & 0x7FFFFFFF) % 3 == zlib.crc32(key) % 3
    )
    choice = explain_choice(key, zlib.crc32(key) % 3, 3)
    assert choice.matches == ("murmur2", "crc32")
    assert "agree" in choice.why


def test_no_key_one_partition_and_an_empty_key():
    assert explain_choice(None, 1, 3).matches == ()
    assert "no key" in explain_choice(None, 1, 3).why
    assert explain_choice(b"k", 0, 1).why == "the topic has one partition"
    assert "crc32" not in explain_choice(b"", 0, 3).matches


def test_likely_partitions_are_all_with_the_likely_first():
    key = b"N14228"
    order = likely_partitions(key, 50)
    assert sorted(order) == list(range(50))
    assert order[0] == (murmur2(key) & 0x7FFFFFFF) % 50
    assert order[1] == zlib.crc32(key) % 50
