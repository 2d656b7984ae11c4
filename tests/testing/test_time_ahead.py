"""What a broker that starts reads of the time."""

from __future__ import annotations

from pathlib import Path

from ottla.testing.time_ahead import TimeAhead


def test_the_brokers_of_a_folder_share_it(tmp_path: Path) -> None:
    one, other = TimeAhead.of(tmp_path / "1"), TimeAhead.of(tmp_path / "2")
    assert one.read_ms() == 0
    one.add(1_500)
    other.add(500)
    assert one.read_ms() == other.read_ms() == 2_000
