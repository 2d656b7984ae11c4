"""The files of a batch, for a journey that ends in a folder on this machine.

Spark's file sink lists the files of batch n in `_spark_metadata/<n>`: a line with the version, then
an object of JSON for each file. Every tenth list is `<n>.compact` and has the files of all batches
up to n, so the files of that one batch are not known there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

Document = dict[str, Any]

LISTS: Final = "_spark_metadata"
VERSION: Final = "v1"
MAX_FILES: Final = 10
MAX_LIST_BYTES: Final = 1_000_000


def add_files(document: Document) -> None:
    """Add to each delivery into files their names, where this machine has the list of the batch."""
    for one in document["delivered"]:
        sink = one.get("sink")
        if (
            sink
            and sink["place_is"] == "folder"
            and sink["version"] is not None
            and not _is_out(one)
        ):
            found = listed(Path(sink["place"]), sink["version"])
            if found:
                sink["files"] = found[:MAX_FILES]
                sink["file_count"] = len(found)


def _is_out(one: Document) -> bool:
    """Whether the message is in no file, because it was rejected."""
    rejected = one.get("rejected")
    return bool(rejected and rejected["certain"])


def listed(folder: Path, number: int) -> list[str]:
    """The files of a list, below the folder; none where it cannot be read here."""
    try:
        with (folder / LISTS / str(number)).open(encoding="utf-8") as file:
            version, *lines = file.read(MAX_LIST_BYTES).splitlines()
        if version != VERSION:
            return []
        paths = [str(json.loads(line)["path"]) for line in lines]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [unquote(path).rpartition(f"{folder}/")[2] for path in paths]
