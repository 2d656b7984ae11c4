"""The files of a batch, from the lists of Spark's file sink on this machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.tracing.file_lists import MAX_FILES, add_files, listed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lists = tmp_path / "lake" / "_spark_metadata"
    lists.mkdir(parents=True)
    names = ["day=1/part-0.parquet", "day=a%20b/part-1.parquet"]
    paths = [f"file://{tmp_path}/lake/{name}" for name in names]
    lines = [json.dumps({"path": path, "size": 1, "action": "add"}) for path in paths]
    (lists / "3").write_text("\n".join(["v1", *lines]))
    (lists / "4").write_text("\n".join(["v1", *(lines * MAX_FILES)]))
    (lists / "5").write_text("v2\n{}")
    (lists / "6").write_text("v1\n{")
    (lists / "7").write_bytes(b"")
    return tmp_path / "lake"


def journey(place: Path, version: int | None, place_is: str = "folder") -> dict[str, Any]:
    sink = {"place": str(place), "place_is": place_is, "version": version}
    return {"delivered": [{"sink": sink}, {"sink": None}, {}]}


def test_a_rejected_message_is_in_no_file(folder: Path) -> None:
    document = journey(folder, 3)
    document["delivered"][0]["rejected"] = {"certain": True}
    add_files(document)
    assert "files" not in document["delivered"][0]["sink"]


def test_the_files_of_a_batch_below_their_folder(folder: Path) -> None:
    document = journey(folder, 3)
    add_files(document)
    sink = document["delivered"][0]["sink"]
    assert sink["files"] == ["day=1/part-0.parquet", "day=a b/part-1.parquet"]
    assert sink["file_count"] == 2
    many = journey(folder, 4)
    add_files(many)
    sink = many["delivered"][0]["sink"]
    assert (len(sink["files"]), sink["file_count"]) == (MAX_FILES, 2 * MAX_FILES)


def test_what_cannot_be_read_here_adds_nothing(folder: Path) -> None:
    for number in (5, 6, 7, 8):
        assert listed(folder, number) == []
    for document in (journey(folder, None), journey(folder, 8), journey(folder, 3, "table")):
        add_files(document)
        assert "files" not in document["delivered"][0]["sink"]
