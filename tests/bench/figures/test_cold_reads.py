import os
from pathlib import Path

from bench.figures.cold_reads import drop, read_bytes


def test_a_dropped_file_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100_000)
    before = read_bytes(os.getpid())
    drop(path)
    assert path.read_bytes() == b"x" * 100_000
    assert read_bytes(os.getpid()) >= before
