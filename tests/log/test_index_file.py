import struct
from pathlib import Path

from ottla.log.index_file import append_entries, find_entry, last_entry, read_entries

ENTRY = struct.Struct(">ii")


def test_entries_follow_the_stored_ones_and_the_rest_is_truncated(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    append_entries(path, 0, ENTRY.pack(1, 10) + ENTRY.pack(2, 20) + b"torn")
    append_entries(path, 8, ENTRY.pack(3, 30))
    assert read_entries(path, ENTRY) == ENTRY.pack(1, 10) + ENTRY.pack(3, 30)
    assert last_entry(path, ENTRY) == (3, 30)
    assert find_entry(path, ENTRY, 2) == (0, (1, 10))
    assert find_entry(path, ENTRY, 0) == (-1, None)
    append_entries(path, 0, b"")
    assert last_entry(path, ENTRY) is None
