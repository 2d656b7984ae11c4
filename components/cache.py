"""Keeps downloads and builds in the user's cache folder, outside the repository."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def folder(name: str) -> Path:
    """The folder `name` of Ottla's cache, which may not exist yet (XDG base directories)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ottla" / name


def is_ready(path: Path) -> bool:
    """Whether `making` has filled this folder completely."""
    return (path / ".ready").is_file()


@contextmanager
def making(path: Path) -> Iterator[Path]:
    """Fill a cache folder. Refill one that an earlier run left incomplete."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    yield path
    (path / ".ready").touch()
