"""Where downloaded and built things are kept: under the user's cache folder, not the repository."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def folder(name: str) -> Path:
    """The folder `name` of Ottla's cache, which may not exist yet (XDG base directories)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ottla" / name


def is_ready(place: Path) -> bool:
    """Whether `making` has filled this folder to the end."""
    return (place / ".ready").is_file()


@contextmanager
def making(place: Path) -> Iterator[Path]:
    """Fill a cache folder. One that was left half made by an earlier run is begun anew."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    yield place
    (place / ".ready").touch()
