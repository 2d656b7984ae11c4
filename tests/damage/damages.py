"""The files of a data folder, and what can happen to each of them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple


class Damage(NamedTuple):
    """`apply(path, other)` changes the file; `other` is one of the same kind."""

    name: str
    apply: Callable[[Path, Path], None]
    changes_content: bool = True


def _write(change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    def apply(path: Path, other: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return apply


def _flip(content: bytes, position: int, bit: int) -> bytes:
    if not content:
        return b"\x01"
    changed = bytearray(content)
    changed[position % len(content)] ^= 1 << bit
    return bytes(changed)


def _folder(path: Path, other: Path) -> None:
    path.unlink()
    path.mkdir()


def _other(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


def _nothing(path: Path, other: Path) -> None:
    """The test makes it unreadable: root reads every file."""


GARBAGE: Final = random.Random(7).randbytes(41)
UNREADABLE: Final = Damage("unreadable", _nothing)
DAMAGES: Final = (
    Damage("removed", lambda path, other: path.unlink()),
    Damage("emptied", _write(lambda content: b"")),
    Damage("half", _write(lambda content: content[: len(content) // 2])),
    Damage("head", _write(lambda content: _flip(content, 0, 0))),
    Damage("near head", _write(lambda content: _flip(content, 7, 1))),
    Damage("middle", _write(lambda content: _flip(content, len(content) // 2, 3))),
    Damage("third", _write(lambda content: _flip(content, len(content) // 3, 0))),
    Damage("end", _write(lambda content: _flip(content, -1, 0))),
    Damage("near end", _write(lambda content: _flip(content, -3, 2))),
    Damage("zeros", _write(lambda content: bytes(len(content)))),
    Damage(
        "zeros at the end",
        _write(lambda content: content[: len(content) * 2 // 3] + bytes(-(-len(content) // 3))),
    ),
    Damage("garbage after it", _write(lambda content: content + GARBAGE)),
    Damage("a folder", _folder),
    Damage("another's", _other),
    UNREADABLE,
)
