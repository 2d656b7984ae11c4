import pytest

from ottla.log.config import LogConfig
from ottla.records.compression import Compression
from ottla.records.header import TimestampType


@pytest.mark.parametrize(
    ("name", "compression"),
    [("producer", None), ("uncompressed", Compression.none), ("zstd", Compression.zstd)],
)
def test_the_compression_that_batches_are_given(name: str, compression: Compression | None) -> None:
    assert LogConfig(compression_type=name).stored_compression is compression


def test_who_sets_the_timestamps() -> None:
    assert LogConfig().stamped_type is TimestampType.create_time
    ours = LogConfig(timestamp_type="LogAppendTime")
    assert ours.stamped_type is TimestampType.log_append_time


def test_a_compacted_segment_closes_in_time_for_its_cleaning() -> None:
    config = LogConfig(segment_ms=100, max_compaction_lag_ms=50)
    assert config.roll_ms == 100
    assert LogConfig(segment_ms=100, max_compaction_lag_ms=50, cleanup_compact=True).roll_ms == 50
