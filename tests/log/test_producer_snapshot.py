import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.producer_snapshot import decode_snapshot, encode_snapshot
from ottla.log.producer_state import BatchTrace, Producer


def _producer(producer_id: int, *traces: BatchTrace) -> Producer:
    producer = Producer(producer_id, 3, 9, traces[-1].timestamp_ms if traces else 88, 17)
    producer.batches.extend(traces)
    return producer


def test_the_file_is_kafkas() -> None:
    content = encode_snapshot([_producer(1, BatchTrace(6, 7, 2, 1234))])
    assert content[:2].hex() == "0001"
    assert content[6:].hex() == (
        "00000001"  # entries; then id, epoch, sequence, offset, delta, time, coordinator, first
        "00000000000000010003000000060000000000000007"
        "0000000200000000000004d2000000090000000000000011"
    )
    assert int.from_bytes(content[2:6]) == crc32c.crc32c(content[6:])


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**31 - 1)), max_size=8))
def test_only_the_last_batch_of_each_is_kept(ids: list[tuple[int, int]]) -> None:
    producers = [_producer(at, BatchTrace(0, 1, 0, 5), BatchTrace(seq, 9, 4, 6)) for at, seq in ids]
    found = decode_snapshot(encode_snapshot(producers))
    assert [each.producer_id for each in found] == [at for at, _ in ids]
    assert [list(each.batches) for each in found] == [[BatchTrace(seq, 9, 4, 6)] for _, seq in ids]


def test_a_producer_of_which_only_a_marker_is_known() -> None:
    (found,) = decode_snapshot(encode_snapshot([_producer(4)]))
    assert not found.batches
    assert (found.last_offset, found.last_sequence, found.last_timestamp_ms) == (-1, -1, 88)
    assert (found.coordinator_epoch, found.transaction_start_offset) == (9, 17)


def test_each_torn_or_changed_snapshot_is_refused() -> None:
    content = encode_snapshot([_producer(1, BatchTrace(6, 7, 2, 1234))])
    for end in range(len(content)):
        with pytest.raises(ValueError, match="it"):
            decode_snapshot(content[:end])
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        with pytest.raises(ValueError, match="it"):
            decode_snapshot(bytes(changed))
