"""The picture of a log's files shows the fields of what the log wrote."""

from pathlib import Path

from website.pictures.log_files import BATCH, INDEX, TIME_INDEX, fields_of, value_of, written


def test_every_field_has_its_value(tmp_path: Path) -> None:
    files = written(tmp_path)
    values = {field.name: value_of(field, part) for field, part in fields_of(files[".log"], BATCH)}
    assert values["base offset"] == "0"
    assert values["leader epoch"] == "3"
    assert values["key"] == "alice"
    assert values["value"] == "2 apples"
    assert sum(field.size for field in BATCH) * 2 == len(files[".log"])
    assert values["batch length (what follows)"] == str(len(files[".log"]) // 2 - 12)


def test_index_entries_are_whole(tmp_path: Path) -> None:
    files = written(tmp_path)
    assert len(files[".index"]) % sum(field.size for field in INDEX) == 0
    assert len(files[".timeindex"]) % sum(field.size for field in TIME_INDEX) == 0
    assert files[".index"]
    assert files[".timeindex"]
