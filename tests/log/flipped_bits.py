"""A file with one wrong bit after the other."""

from collections.abc import Iterator
from pathlib import Path


def flipped(path: Path, *, every: int) -> Iterator[None]:
    """Each `every`-th bit of the file is wrong in turn; then the file is as it was."""
    content = path.read_bytes()
    for bit in range(0, len(content) * 8, every):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        yield
    path.write_bytes(content)
