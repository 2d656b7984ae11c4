"""The walk as Python source and, where it was compiled, as the extension module."""

import random
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ottla.records
from ottla.records import walk
from ottla.records.build import build_batch, encode_records, finish_batch
from ottla.records.errors import InvalidRecordError
from ottla.records.header import HEADER_BYTES, BatchHeader
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

SOURCE = Path(ottla.records.__file__).with_name("walk.py")


def _from_source() -> ModuleType:
    loader = SourceFileLoader("walk_from_source", str(SOURCE))
    spec = spec_from_file_location("walk_from_source", SOURCE, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


PURE = _from_source()
Walk = Callable[[bytes, int], tuple[int, int, int]]


@pytest.fixture(params=["source", "imported"])
def walk_records(request: pytest.FixtureRequest) -> Walk:
    """Both are the same if nothing was compiled."""
    module = PURE if request.param == "source" else walk
    return module.walk_records  # type: ignore[no-any-return]


def _encoded(records: list[Record], base_timestamp: int = 0) -> bytes:
    return encode_records(records, range(len(records)), base_timestamp)


def test_the_result_of_a_walk(walk_records: Walk) -> None:
    records = [Record(0, at, key, b"v") for at, key in ((5, b"k"), (-3, None), (70_000, None))]
    assert walk_records(_encoded(records), 3) == (-3, 70_000, 2)
    assert walk_records(_encoded(records, base_timestamp=100), 3) == (-103, 69_900, 2)
    assert walk_records(b"", 0) == (0, 0, 0)


@pytest.mark.parametrize("delta_ms", [2**63 - 1, -(2**63), 2**62, -1, 63, 64, -64, -65])
def test_timestamps_of_64_bits(walk_records: Walk, delta_ms: int) -> None:
    record = _encoded([Record(0, delta_ms, None, None)])
    assert walk_records(record, 1) == (delta_ms, delta_ms, 1)


def test_an_endless_timestamp_is_refused(walk_records: Walk) -> None:
    with pytest.raises(InvalidRecordError, match="10 bytes"):
        walk_records(b"\x20\0" + b"\xff" * 10 + b"\x01\0\0\0\0", 1)


def test_sizes_at_the_limits_of_their_encoding(walk_records: Walk) -> None:
    sizes = (0, 1, 50, 62, 63, 64, 65, 8_190, 8_191, 8_192, 1_100_000)
    records = [Record(0, 0, b"k" * size, b"v" * size, (("h" * size, b""),)) for size in sizes]
    assert walk_records(_encoded(records), len(records)) == (0, 0, 0)


def test_many_records(walk_records: Walk) -> None:
    records = [Record(0, number, b"k", b"v") for number in range(20_000)]
    assert walk_records(_encoded(records), 20_000) == (0, 19_999, 0)


def _verdict(walk_records: Walk, records: bytes, count: int) -> object:
    try:
        return tuple(walk_records(records, count))
    except InvalidRecordError as error:
        return str(error)


@given(data=st.data())
def test_damage_is_refused_as_by_iterate_records(
    records: st.SearchStrategy[list[Record]], data: st.DataObject
) -> None:
    body = bytearray(build_batch(data.draw(records))[HEADER_BYTES:])
    count = data.draw(st.integers(1, 31))
    position = data.draw(st.integers(0, len(body) - 1))
    body[position] = data.draw(st.integers(0, 255))
    verdict = _verdict(PURE.walk_records, bytes(body), count)
    assert _verdict(walk.walk_records, bytes(body), count) == verdict
    if isinstance(verdict, str):
        return
    header = BatchHeader(0, 0, 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    found = list(iterate_records(finish_batch(header, bytes(body))))
    assert [record.offset for record in found] == list(range(count))
    times = [record.timestamp_ms for record in found]
    keyless = sum(record.key is None for record in found)
    assert verdict == (min(times), max(times), keyless)


def test_random_bytes_give_the_same_result() -> None:
    rng = random.Random(4)
    for _ in range(3_000):
        body = bytes(rng.choice((0, 1, 2, 4, 127, 128, 255)) for _ in range(rng.randrange(40)))
        count = rng.randrange(4)
        assert _verdict(walk.walk_records, body, count) == _verdict(PURE.walk_records, body, count)
