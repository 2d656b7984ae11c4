"""What only the embedded tree does; `test_tree.py` tests what both trees have in common."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.embedded_store import (
    EmbeddedStore,
    StoreError,
    StoreSyncError,
    store_error,
)
from ottla.coordination.tree import Change, Create, Event, SessionExpiredError


async def test_expiry_deletes_the_ephemeral_nodes_and_fires_all_watches() -> None:
    tree = EmbeddedTree(None)
    mortal, observer = await tree.connect(), await tree.connect()
    await mortal.create("/controller", b"1", ephemeral=True)
    own: list[Event] = []
    others: list[Event] = []
    await mortal.get("/controller", own.append)
    await observer.exists("/controller", others.append)
    await tree.expire(mortal)
    assert own == [Event(Change.EXPIRED, "")]
    assert others == [Event(Change.DELETED, "/controller")]
    for call in (mortal.get("/"), mortal.create("/b"), mortal.read_tree("/"), mortal.set("/", b"")):
        with pytest.raises(SessionExpiredError):
            await call
    assert await observer.children("/") == ()
    await tree.expire(mortal)
    await tree.close()


async def test_the_file_survives_a_restart(tmp_path: Path) -> None:
    tree = EmbeddedTree(tmp_path)
    session = await tree.connect()
    await session.multi([Create("/a", b"kept"), Create("/e", b"", True)])
    await session.close()
    await tree.close()
    tree = EmbeddedTree(tmp_path)
    session = await tree.connect()
    assert set(await session.read_tree("/")) == {"/", "/a"}
    await tree.close()


async def test_the_first_call_fails_on_an_unusable_folder(tmp_path: Path) -> None:
    tree = EmbeddedTree(tmp_path / "none")
    with pytest.raises(StoreError, match="unable to open"):
        await tree.connect()
    await tree.close()


async def test_after_a_failed_sync_nothing_is_read_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite may have left in the file what was refused: the next start finds out."""
    lost: list[str] = []
    tree = EmbeddedTree(tmp_path, lost.append)
    session = await tree.connect()
    await session.create("/a", b"1")

    def refuse(code: int) -> None:
        def multi(*_: Any) -> None:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = code
            raise store_error("coordination.sqlite", error)

        monkeypatch.setattr(EmbeddedStore, "multi", multi)

    refuse(sqlite3.SQLITE_FULL)
    with pytest.raises(StoreError):
        await session.set("/a", b"2")
    assert lost == []
    refuse(sqlite3.SQLITE_IOERR_FSYNC)
    with pytest.raises(StoreSyncError):
        await session.set("/a", b"2")
    monkeypatch.undo()
    for call in (session.set("/a", b"3"), session.get("/a"), session.close()):
        with pytest.raises(StoreSyncError, match="disk I/O error"):
            await call
    assert set(lost) == {"coordination.sqlite: disk I/O error"}
    await tree.close()
    tree = EmbeddedTree(tmp_path)
    assert (await (await tree.connect()).get("/a")).data == b"1"
    await tree.close()
