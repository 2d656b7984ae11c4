from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.open_file import OpenFile
from ottla.log.scan import WHOLE_CHUNK_BYTES, scan_batches, scan_headers
from ottla.records.build import build_batch
from ottla.records.errors import CorruptBatchError
from ottla.records.record import Record


def _file(path: Path, sizes: list[int]) -> tuple[OpenFile, list[int], int]:
    batches = [
        build_batch([Record(0, 1, None, bytes(size))], base_offset=number)
        for number, size in enumerate(sizes)
    ]
    path.write_bytes(b"".join(batches))
    positions = [sum(map(len, batches[:number])) for number in range(len(batches))]
    return OpenFile(str(path)), positions, sum(map(len, batches))


@given(
    sizes=st.lists(st.integers(0, 5_000), max_size=12),
    chunk_bytes=st.integers(61, 9_000),
    cut=st.integers(0, 3_000),
)
def test_both_scans_find_each_whole_batch(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], chunk_bytes: int, cut: int
) -> None:
    file, positions, size = _file(tmp_path_factory.getbasetemp() / "scan", sizes)
    end = max(size - cut, 0)
    ends = [*positions[1:], size]
    expected = [at for at, behind in zip(positions, ends, strict=False) if behind <= end]
    assert [at for at, _ in scan_headers(file, 0, end, chunk_bytes)] == expected
    found = list(scan_batches(file, 0, end))
    assert [at for at, _, _ in found] == expected
    assert [header.base_offset for _, header, _ in found] == list(range(len(expected)))
    assert [len(batch) for _, _, batch in found] == [header.size_bytes for _, header, _ in found]


def test_batches_larger_than_a_chunk(tmp_path: Path) -> None:
    sizes = [10, WHOLE_CHUNK_BYTES + 5, 3, 2 * WHOLE_CHUNK_BYTES, 7]
    file, positions, size = _file(tmp_path / "f", sizes)
    found = list(scan_batches(file, 0, size))
    assert [at for at, _, _ in found] == positions
    assert [len(batch) - sizes[n] > 60 for n, (_, _, batch) in enumerate(found)] == [True] * 5


@pytest.mark.parametrize("scan", [scan_headers, scan_batches])
def test_bytes_that_are_no_header_are_refused(tmp_path: Path, scan: type) -> None:
    (tmp_path / "f").write_bytes(bytes(500))
    with pytest.raises(CorruptBatchError):
        list(scan(OpenFile(str(tmp_path / "f")), 0, 500))
