from ottla.log.config import LogConfig
from ottla.log.expiry import cleanable_ms, expires_ms, missing_bytes


def test_by_time_it_expires_after_its_newest_record() -> None:
    assert expires_ms(1_000, LogConfig(retention_ms=500)) == 1_500
    assert expires_ms(1_000, LogConfig(retention_ms=0)) == 1_000
    assert expires_ms(1_000, LogConfig(retention_ms=-1)) is None
    assert expires_ms(1_000, LogConfig(retention_ms=500, cleanup_delete=False)) is None


def test_by_size_it_expires_when_enough_comes_after_it() -> None:
    assert missing_bytes(300, LogConfig(retention_bytes=1_000)) == 700
    assert missing_bytes(1_000, LogConfig(retention_bytes=1_000)) == 0
    assert missing_bytes(300, LogConfig()) is None
    assert missing_bytes(300, LogConfig(retention_bytes=1, cleanup_delete=False)) is None


def test_compaction_waits_for_its_lag() -> None:
    assert cleanable_ms(1_000, LogConfig(min_compaction_lag_ms=500)) == 1_500
    assert cleanable_ms(1_000, LogConfig()) is None
