"""Vectors are those of Kafka's UtilsTest."""

import pytest

from ottla.records.murmur2 import murmur2, partition_of_key


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
def test_murmur2_is_javas(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed % 2**32


def test_the_partition_has_no_sign() -> None:
    assert partition_of_key(b"21", 10) == (-973932308 & 0x7FFFFFFF) % 10
