"""Keeps the copy of the embedded tree's file up to date (`store_copy`), in a thread of its own.

A copy is written some time after a change, with all changes until then, and at the close. So while
nothing changes nothing is written, and copies take little of the time however large the tree is.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Final

from ottla.coordination.store_check import DamagedStoreError
from ottla.coordination.store_copy import FILE_NAME, write_copy
from ottla.runtime.background import Background

logger = logging.getLogger("ottla.coordination")

COPY_AFTER_MS: Final = 1_000
REST: Final = 20
"""After a copy that took a second, the next one begins 20 seconds later."""


class CopyKeeper:
    """For one file. For the event loop's thread only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changes = 0
        """Of the file; see `StoreState`."""
        self._copied = -1
        """The changes that the copy has."""
        self._took_s = 0.0
        self._due = asyncio.Event()
        self._writing: asyncio.Future[None] | None = None
        self._background = Background(logger, "copying the coordination tree")

    def changed(self, changes: int) -> None:
        """The file has so many changes now."""
        self._changes = changes
        if changes != self._copied:
            self._due.set()
            if not len(self._background):
                self._background.keep(self._run)

    async def stop(self) -> None:
        """Ends the work; afterwards no thread reads the file."""
        await self._background.close()
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(max(COPY_AFTER_MS / 1000, REST * self._took_s))
            self._due.clear()
            await self.copy()

    async def copy(self) -> None:
        """Copies the file now, if it has changed. Logs errors: the file itself is as it was."""
        if self._changes == self._copied:
            return
        loop, changes = asyncio.get_running_loop(), self._changes
        began = loop.time()
        self._writing = asyncio.ensure_future(asyncio.to_thread(write_copy, self._folder))
        try:
            await asyncio.shield(self._writing)
        except DamagedStoreError as error:
            logger.error(
                "%s is damaged (%s), and its copy is kept as it is: restart the broker soon, as the"
                " copy lacks what is changed until then", self._folder / FILE_NAME, error,
            )  # fmt: skip
        except (sqlite3.Error, OSError) as error:
            logger.warning("cannot copy %s: %s", self._folder / FILE_NAME, error)
        else:
            self._copied = changes
        self._took_s = loop.time() - began
