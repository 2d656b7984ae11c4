import pytest

from ottla.records.build import build_batch
from ottla.records.errors import InvalidRecordError
from ottla.records.header import ensure_crc, read_header
from ottla.records.iterate import iterate_records
from ottla.records.recompress import recompress
from ottla.records.record import Record


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_only_the_compression_changes(
    three_records: list[Record], source: int, target: int
) -> None:
    batch = build_batch(three_records, compression=source, producer_id=8, base_sequence=3)
    header, changed = recompress(read_header(batch), batch + b"more", target)
    assert header == read_header(changed)
    ensure_crc(header, changed)
    assert header.compression == target
    assert (header.producer_id, header.base_sequence, header.count) == (8, 3, 3)
    assert list(iterate_records(changed)) == three_records


def test_a_bomb_is_refused() -> None:
    batch = build_batch([Record(0, 0, None, bytes(1_000_000))], compression=1)
    with pytest.raises(InvalidRecordError):
        recompress(read_header(batch), batch, 0, limit_bytes=1_000)
