"""When the copy of the tree is written."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ottla.coordination import copy_keeper
from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.store_copy import COPY_NAME, FILE_NAME, copied_state


async def test_a_copy_has_the_changes_of_a_while_and_at_the_close_all(
    tmp_path: Path, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_keeper, "COPY_AFTER_MS", 20)
    tree = EmbeddedTree(tmp_path)
    session = await tree.connect()
    for number in range(5):
        await session.create(f"/{number}")

    def changes() -> int:
        state = copied_state(tmp_path)
        return -1 if state is None else state.changes

    await eventually(lambda: changes() == 7)  # the first state, a session, five nodes
    monkeypatch.setattr(copy_keeper, "COPY_AFTER_MS", 60_000)
    await session.create("/later")
    await session.create("/ephemeral", ephemeral=True)
    await tree.close()
    assert changes() == 10
    assert sorted(each.name for each in tmp_path.iterdir()) == [FILE_NAME, COPY_NAME]
    written = (tmp_path / COPY_NAME).stat().st_mtime_ns
    (tmp_path / FILE_NAME).unlink()
    again = EmbeddedTree(tmp_path)
    session = await again.connect()
    assert again.may_lack_changes
    assert await session.children("/") == ("0", "1", "2", "3", "4", "later")
    await again.close()
    assert (tmp_path / COPY_NAME).stat().st_mtime_ns > written


async def test_a_copy_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(folder: Path) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(copy_keeper, "write_copy", full)
    tree = EmbeddedTree(tmp_path)
    session = await tree.connect()
    await session.create("/a")
    await tree.close()
    (line,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert line == f"cannot copy {tmp_path / FILE_NAME}: database or disk is full"


async def test_damage_is_told_while_the_copy_is_still_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tree = EmbeddedTree(tmp_path)
    session = await tree.connect()
    await session.create("/a", b"1")
    await tree.close()
    shutil.copy(tmp_path / COPY_NAME, tmp_path / "before")
    again = EmbeddedTree(tmp_path)
    session = await again.connect()
    with sqlite3.connect(tmp_path / FILE_NAME) as database:
        database.execute("UPDATE node SET data = x'00' WHERE path = '/a'")
    database.close()
    await again.close()
    assert "coordination.sqlite is damaged (these nodes are not as they were written: /a)" in (
        caplog.text
    )
    assert (tmp_path / COPY_NAME).read_bytes() == (tmp_path / "before").read_bytes()
