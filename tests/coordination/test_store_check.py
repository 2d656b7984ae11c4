"""Damage to the file of the embedded tree: always the same tree, or one clear line."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from ottla.coordination.embedded_store import FILE_NAME, EmbeddedStore, StoreError
from ottla.coordination.store_check import DamagedStoreError, StoreState
from ottla.coordination.store_copy import COPY_NAME, copied_state, write_copy
from ottla.coordination.tree import Create, Delete, Operation, SetData, TreeNode

TOPIC = b'{"version":3,"topic_id":"O-dMBtWbRhW_sd9om4G3sg","partitions":{"0":[1]}}'


def filled(folder: Path) -> dict[str, TreeNode]:
    """A closed store with 150 topics and its copy; what is in it."""
    store = filled_store(folder)
    found = store.read_tree("/")
    store.close()
    write_copy(folder)
    return found


def filled_store(folder: Path) -> EmbeddedStore:
    folder.mkdir(exist_ok=True)
    store = EmbeddedStore(folder)
    store.new_session()
    store.multi([Create("/brokers"), Create("/brokers/topics")], 1)
    for first in range(0, 150, 50):
        writes = [Create(f"/brokers/topics/t{each}", TOPIC) for each in range(first, first + 50)]
        store.multi(writes, 1)
    store.multi([SetData("/brokers/topics/t7", b"changed"), Delete("/brokers/topics/t9")], 1)
    return store


def outcome(folder: Path) -> dict[str, TreeNode] | str:
    """The tree, or the error's line."""
    try:
        store = EmbeddedStore(folder)
    except StoreError as error:
        return str(error)
    try:
        return store.read_tree("/")
    finally:
        store.close()


def damaged(file: Path, random: Random) -> None:
    """One flipped bit, a page of zeros, or a file that is cut."""
    content = bytearray(file.read_bytes())
    at, kind = random.randrange(len(content)), random.randrange(6)
    if kind == 0:
        content[at - at % 4096 : at - at % 4096 + 4096] = bytes(4096)
    elif kind == 1:
        del content[at:]
    else:
        content[at] ^= 1 << random.randrange(8)
    file.write_bytes(content)


@pytest.mark.parametrize("with_copy", [True, False])
def test_damage_gives_the_same_tree_or_one_clear_line(
    tmp_path: Path, with_copy: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """One flipped bit of a topic id, and the broker deleted the topic's folder."""
    before = filled(tmp_path / "good")
    random = Random(5)
    used = refused = 0
    for _ in range(120):
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "good", folder)
        if not with_copy:
            (folder / COPY_NAME).unlink()
        damaged(folder / FILE_NAME, random)
        caplog.clear()
        found = outcome(folder)
        lines = [each for each in caplog.records if each.levelno >= logging.WARNING]
        if isinstance(found, str):
            refused += 1
            assert not with_copy
            assert found.startswith(f"{folder / FILE_NAME} cannot be used (")
            assert found.endswith("restore coordination.sqlite from a backup of the data folder")
            assert "\n" not in found
            continue
        assert found == before
        if lines:
            used += 1
            (line,) = lines
            assert "using its copy of" in line.getMessage()
            assert (folder / f"{FILE_NAME}.damaged-1").exists()
    assert (used if with_copy else refused) > 60


def test_a_damaged_write_ahead_log_does_not_lose_changes_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite ends it at the first damaged frame, and says nothing."""
    open_folder = tmp_path / "open"
    store = filled_store(open_folder)
    before = store.read_tree("/")
    write_copy(open_folder)
    random = Random(6)
    used = 0
    for _ in range(30):
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(open_folder, folder)  # as a killed process leaves it
        wal = folder / f"{FILE_NAME}-wal"
        assert wal.stat().st_size > 0
        damaged(wal, random)
        caplog.clear()
        assert outcome(folder) == before
        used += "using its copy of" in caplog.text
    assert used > 5
    store.close()


def edited(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / FILE_NAME) as database:
        database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "UPDATE node SET data = replace(data, 'sg', 'sh') WHERE path LIKE '%/t8%'",
            "these nodes are not as they were written: /brokers/topics/t8, /brokers/topics/t80,"
            " /brokers/topics/t81 and 8 more",
        ),
        ("DELETE FROM node WHERE path LIKE '%/t8'", "nodes are missing, or too many"),
        ("UPDATE node SET path = '/brokers/topics/tt' WHERE path LIKE '%/t8'", "/topics/tt"),
        ("UPDATE meta SET value = value - 1", "nodes are missing, or too many"),
        ("UPDATE state SET digest = digest + 1", "its digest is damaged"),
        ("DELETE FROM state", "its digest is missing"),
        ("DROP TABLE state", "its digest is missing"),
        ("DROP TABLE node", "no such table: node"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, statement: str, why: str) -> None:
    before = filled(tmp_path)
    edited(tmp_path, statement)
    copy = (tmp_path / COPY_NAME).rename(tmp_path / "away")
    line = outcome(tmp_path)
    assert isinstance(line, str)
    assert why in line
    assert "coordination.sqlite.copy does not exist" in line
    copy.write_bytes(b"damaged, too" * 1000)
    copy.rename(tmp_path / COPY_NAME)
    line = outcome(tmp_path)
    assert isinstance(line, str)
    assert "coordination.sqlite.copy is damaged, too (file is not a database)" in line
    assert before


@pytest.mark.parametrize("age", [0, 1])
def test_a_copy_says_whether_it_has_every_change(
    tmp_path: Path, age: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = filled(tmp_path)
    if age:
        store = EmbeddedStore(tmp_path)
        store.multi([Create("/later")], 1)
        store.close()
    edited(tmp_path, "UPDATE node SET data = x'00' WHERE path = '/brokers/topics/t1'")
    store = EmbeddedStore(tmp_path)
    assert store.may_lack_changes is bool(age)
    assert store.read_tree("/") == before
    assert ("which has every change" in caplog.text) is (not age)
    assert ("that were changed later are as they were then" in caplog.text) is bool(age)
    store.close()
    again = EmbeddedStore(tmp_path)
    assert not again.may_lack_changes
    again.close()


def test_a_missing_file_is_taken_from_its_copy(tmp_path: Path) -> None:
    before = filled(tmp_path)
    (tmp_path / FILE_NAME).unlink()
    assert outcome(tmp_path) == before


def test_damage_while_the_broker_runs_is_an_error_and_never_copied(tmp_path: Path) -> None:
    filled(tmp_path)
    copied = (tmp_path / COPY_NAME).read_bytes()
    store = EmbeddedStore(tmp_path)
    store.read_tree("/")
    store.multi([Create("/later")], 1)
    edited(tmp_path, "UPDATE node SET data = x'00' WHERE path = '/brokers/topics/t1'")
    for read in (lambda: store.get("/brokers/topics/t1"), lambda: store.read_tree("/brokers")):
        with pytest.raises(StoreError, match=r"is damaged \(/brokers/topics/t1"):
            read()
    with pytest.raises(StoreError, match="is damaged"):
        store.multi([SetData("/brokers/topics/t1", b"new")], 1)
    store.close()
    with pytest.raises(DamagedStoreError, match="/brokers/topics/t1"):
        write_copy(tmp_path)
    assert (tmp_path / COPY_NAME).read_bytes() == copied


def test_the_digest_follows_each_change(tmp_path: Path) -> None:
    """Also those that fail, ephemeral nodes, and what a killed process left."""
    store = EmbeddedStore(tmp_path)
    session = store.new_session()
    store.multi([Create("/a", b"1"), Create("/e", ephemeral=True)], session)
    failures: list[list[Operation]] = [
        [Delete("/a"), Create("/a/b")],
        [SetData("/a", b"2"), Delete("/none")],
    ]
    for failing in failures:
        with pytest.raises(Exception):  # noqa: B017
            store.multi(failing, session)
    store.multi([SetData("/e", b"3"), SetData("/a", b"4")], session)
    state = store.state
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path, killed, ignore=lambda *_: ["killed"])
    assert outcome(killed) == {"/": TreeNode(b"", 0), "/a": TreeNode(b"4", 1, 0, 1)}
    store.end_session(session)
    store.close()
    write_copy(tmp_path)
    copied = copied_state(tmp_path)
    assert copied is not None
    assert copied.changes == state.changes + 1
    assert outcome(tmp_path) == {"/": TreeNode(b"", 0), "/a": TreeNode(b"4", 1, 0, 1)}


def test_a_state_has_a_checksum() -> None:
    assert StoreState(1, 2).checksum != StoreState(2, 1).checksum
    assert StoreState(3, 5).after(-5) == StoreState(4, 0)
