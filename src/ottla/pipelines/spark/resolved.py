"""Jars that Ivy resolved once: the next start takes the files and does not ask Ivy again.

One file, `resolved.json`: {"<packages, separated by commas>": [[path, size in bytes], ...]}.
It is written to a temporary name and renamed, so a crash leaves the old file or the new one. An
entry holds only while each of its files exists with its size; otherwise Ivy resolves as before.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

MAX_ENTRIES: Final = 20
_NAME: Final = "resolved.json"


def read(folder: Path, packages: Sequence[str]) -> list[str] | None:
    """Return the jars of these packages, or None when Ivy must resolve them."""
    entry = _load(folder / _NAME).get(",".join(packages))
    if not isinstance(entry, list) or not entry:
        return None
    jars = []
    for path, size_bytes in entry:
        file = Path(path)
        if not file.is_file() or file.stat().st_size != size_bytes:
            return None
        jars.append(path)
    return jars


def write(
    folder: Path, packages: Sequence[str], jars: Sequence[str], listed: Sequence[str] = ()
) -> None:
    """Remember the jars that Ivy found, given as paths or file: URLs, without the `listed` ones.

    Raises OSError where the folder cannot be written.
    """
    others = set(map(_path, listed))
    paths = [path for path in map(_path, jars) if path not in others]
    if not paths or not all(Path(path).is_file() for path in paths):
        return
    entries = _load(folder / _NAME)
    entries.pop(",".join(packages), None)
    entries[",".join(packages)] = [[path, Path(path).stat().st_size] for path in paths]
    newest = dict(list(entries.items())[-MAX_ENTRIES:])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        json.dump(newest, file)
    os.replace(file.name, folder / _NAME)


def _path(jar: str) -> str:
    return unquote(urlsplit(jar).path) if jar.startswith("file:") else jar


def _load(file: Path) -> dict[str, Any]:
    try:
        entries = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}
