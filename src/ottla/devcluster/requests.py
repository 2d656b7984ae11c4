"""Requests to a running `ottla cluster start`, as files in its folder.

The folder `requests` in the cluster's folder has, for each request:

    <id>.request   {"command": "kill", "broker": 1, "rack": null}
    <id>.answer    {"broker": 1, "state": "killed", ...}, or {"failed": "...", "hint": "..."}

Each file is written under another name and then renamed, so nobody reads half of one. The command
that asked deletes both. What a crash leaves is deleted by the next start: requests are for the
process that runs, not for a later one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from ottla.devcluster.errors import DevClusterError
from ottla.devcluster.lock import is_held

FOLDER: Final = "requests"
REQUEST: Final = ".request"
ANSWER: Final = ".answer"
ANSWER_WITHIN_S: Final = 150.0
"""A restart stops the broker (at most 60 s) and starts it again (at most 60 s)."""
LOOK_PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Request:
    """What to do with a broker. `add` has no broker, and a rack if the cluster has racks."""

    command: str
    broker: int | None = None
    rack: str | None = None


class Requests:
    """The side of `cluster start`."""

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER
        self._folder.mkdir(exist_ok=True)
        for left in self._folder.iterdir():
            left.unlink()

    def waiting(self) -> dict[str, Request]:
        """Requests without an answer, by id."""
        found: dict[str, Request] = {}
        for file in sorted(self._folder.glob(f"*{REQUEST}")):
            if file.with_suffix(ANSWER).exists():
                continue
            try:
                found[file.stem] = Request(**json.loads(file.read_text()))
            except FileNotFoundError:
                # The command that asked has given up.
                continue
        return found

    def answer(self, request_id: str, document: Mapping[str, Any]) -> None:
        _write(self._folder / f"{request_id}{ANSWER}", document)


def ask(data: Path, request: Request) -> dict[str, Any]:
    """The answer of the `cluster start` on this folder. Raises DevClusterError."""
    if not is_held(data):
        raise DevClusterError(
            f"no `ottla cluster start` runs on {data}.",
            "Start it, or name the folder of the one that runs: --data DIR",
        )
    file = data / FOLDER / f"{uuid4()}{REQUEST}"
    try:
        _write(file, asdict(request))
        document = _answered(data, file.with_suffix(ANSWER))
    except OSError as error:
        raise DevClusterError(f"cannot use {data}: {error.strerror or error}.") from None
    finally:
        file.unlink(missing_ok=True)
        file.with_suffix(ANSWER).unlink(missing_ok=True)
    if "failed" in document:
        raise DevClusterError(document["failed"], document["hint"])
    return document


def _answered(data: Path, file: Path) -> dict[str, Any]:
    until = time.monotonic() + ANSWER_WITHIN_S
    while not file.exists():
        if not is_held(data):
            raise DevClusterError(f"the `ottla cluster start` on {data} ended before it answered.")
        if time.monotonic() > until:
            raise DevClusterError(
                f"the `ottla cluster start` on {data} did not answer within {ANSWER_WITHIN_S:g} s."
            )
        time.sleep(LOOK_PAUSE_S)
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def _write(file: Path, document: Mapping[str, Any]) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps(document))
    os.replace(part, file)
