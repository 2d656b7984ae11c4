"""The search of a key as Python source and, where it was compiled, as the extension module."""

from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ottla.records
from ottla.records import key_scan
from ottla.records.build import build_batch, encode_records
from ottla.records.compression import Compression
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.record import Record

SOURCE = Path(ottla.records.__file__).with_name("key_scan.py")


def _from_source() -> Any:
    loader = SourceFileLoader("key_scan_from_source", str(SOURCE))
    spec = spec_from_file_location("key_scan_from_source", SOURCE, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


PURE = _from_source()


@pytest.fixture(params=["source", "imported"])
def module(request: pytest.FixtureRequest) -> Any:
    """Both are the same if nothing was compiled."""
    return PURE if request.param == "source" else key_scan


def encoded(keys: list[bytes | None], value: bytes | None = b"v") -> bytes:
    records = [Record(0, at * 1000, key, value, (("h", b"x"),)) for at, key in enumerate(keys)]
    return encode_records(records, range(len(records)), 0)


def test_the_records_with_the_key_are_found(module: Any) -> None:
    keys = [b"a", None, b"ab", b"a", b"", b"k" * 300, b"a"]
    records = encoded(keys, b"\x02a and \x02a again")
    for key in {each for each in keys if each is not None} | {b"b", b"k" * 299}:
        expected = [at for at, each in enumerate(keys) if each == key]
        assert module.deltas_with_key(records, 7, module.needle_of(key)) == expected


@given(st.lists(st.none() | st.binary(max_size=3), max_size=200), st.binary(max_size=3))
def test_any_keys(keys: list[bytes | None], key: bytes) -> None:
    records = encoded(keys, None)
    expected = [at for at, each in enumerate(keys) if each == key]
    for each in (PURE, key_scan):
        assert each.deltas_with_key(records, len(keys), each.needle_of(key)) == expected


def test_broken_records_are_refused(module: Any) -> None:
    records = encoded([b"a", b"b"])
    needle = module.needle_of(b"b")
    for broken, count in ((records, 3), (records[:-3], 2), (b"\xff" * 40, 1), (b"", 1)):
        with pytest.raises(InvalidRecordError):
            module.deltas_with_key(broken, count, needle)


@given(st.binary(min_size=1, max_size=100), st.integers(1, 5))
def test_no_bytes_are_read_outside(records: bytes, count: int) -> None:
    for each in (PURE, key_scan):
        with suppress(InvalidRecordError):
            each.deltas_with_key(records, count, b"\x02a")


def test_others_have_their_turn(module: Any) -> None:
    turns: list[None] = []
    keys: list[bytes | None] = [b"k"] * 120_000
    found = module.deltas_with_key(
        encoded(keys), len(keys), module.needle_of(b"k"), lambda: turns.append(None)
    )
    assert len(found) == 120_000
    assert len(turns) == 2


def test_whole_batches_are_passed(module: Any) -> None:
    batches = [
        build_batch([Record(0, 1, b"k", b"v" * 30)] * 3, compression=each)
        for each in (Compression.none, Compression.lz4, Compression.none)
    ]
    chunk = b"".join(batches)
    at = [0, len(batches[0]), len(batches[0] + batches[1])]
    passed = module.pass_batches(chunk + batches[0][:70], 0, len(chunk) + 70)
    assert (passed.end, passed.records, passed.last_at) == (len(chunk), 9, at[2])
    assert passed.compressed == [at[1]]
    first = module.pass_batches(chunk, 0, 5)
    assert (first.end, first.last_at, first.compressed) == (at[1], 0, [])
    last = module.pass_batches(chunk, at[1], at[2] + 1)
    assert (last.end, last.last_at, last.compressed) == (len(chunk), at[2], [at[1]])
    nothing = module.pass_batches(b"", 0, 0)
    assert (nothing.end, nothing.records) == (0, 0)


@pytest.mark.parametrize("size", [0, 48, 2**31, 2**32 - 1])
def test_what_is_no_batch_is_refused(module: Any, size: int) -> None:
    """The smallest batch has 49 bytes after its size."""
    with pytest.raises(CorruptBatchError, match="cannot be"):
        module.pass_batches(bytes(8) + size.to_bytes(4) + bytes(60), 0, 72)
