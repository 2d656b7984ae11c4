import pytest

from ottla.records.build import build_batch, rebuild_batch
from ottla.records.control import ControlType, EndTransactionMarker, read_end_marker
from ottla.records.errors import InvalidRecordError
from ottla.records.header import read_header
from ottla.records.record import Record


def _marker(key: bytes | None, value: bytes | None) -> bytes:
    return build_batch(
        [Record(0, 500, key, value)], is_control=True, is_transactional=True, producer_id=3
    )


@pytest.mark.parametrize("number", [0, 1])
def test_markers_are_read(number: int) -> None:
    batch = _marker(bytes((0, 0, 0, number)), bytes((0, 0, 0, 0, 0, 7)))
    assert read_header(batch).is_control
    assert read_end_marker(batch) == EndTransactionMarker(ControlType(number), 7, 500)


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, None), (b"\0\0\0\1", b""), (b"\0\0\0\5", b"\0\0\0\0\0\0"), (b"\0", b"\0\0\0\0\0\0")],
)
def test_other_control_records_are_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="does not end a transaction"):
        read_end_marker(_marker(key, value))


def test_a_marker_that_compaction_emptied_is_none() -> None:
    batch = _marker(b"\0\0\0\0", b"\0\0\0\0\0\0")
    assert read_end_marker(rebuild_batch(read_header(batch), [])) is None
