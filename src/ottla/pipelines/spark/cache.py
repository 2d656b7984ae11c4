"""The folder for what can be made again: jars that were found, class archives of the JVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def folder(environ: Mapping[str, str]) -> Path:
    """Return Ottla's cache folder (XDG base directories); it may not exist yet."""
    base = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ottla" / "spark"
