"""What a pipeline file needs on this machine."""

from pathlib import Path

from ottla.pipelines.file.local_paths import check_local_paths
from ottla.pipelines.file.read import read_text

TEXT = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"
[transform]
function = "late.py:late"
[transform.tables.airlines]
format = "csv"
path = "airlines.csv"
[transform.tables.elsewhere]
format = "delta"
path = "s3a://lake/elsewhere"
[sink]
target = "./lake"
[delivery]
checkpoint = "./cp"
[spark]
jars = ["one.jar"]
ivy_settings = "ivysettings.xml"
"""


def look(folder: Path) -> list[str]:
    return list(map(str, check_local_paths(read_text(folder / "late.toml", TEXT, {}))))


def test_all_that_is_missing_is_found_at_once(tmp_path: Path) -> None:
    (tmp_path / "cp").write_text("")
    (tmp_path / "lake").write_text("")
    assert look(tmp_path) == [
        f"spark.jars: there is no file or folder {tmp_path}/one.jar",
        f"spark.ivy_settings: there is no file {tmp_path}/ivysettings.xml",
        f"transform.function: {tmp_path}/late.py cannot be read: no such file or directory",
        f"transform.tables.airlines.path: there is no file {tmp_path}/airlines.csv",
        f"delivery.checkpoint: {tmp_path}/cp is a file; give a folder",
        f"sink.target: {tmp_path}/lake is a file; give a folder or a table's name",
    ]


def test_nothing_is_missing(tmp_path: Path) -> None:
    for name in ("one.jar", "ivysettings.xml", "airlines.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "late.py").write_text("def late(rows): return rows\n")
    assert look(tmp_path) == []

    (tmp_path / "late.py").write_text("def lat(rows): return rows\n")
    assert look(tmp_path) == [
        f"transform.function: {tmp_path}/late.py has no function 'late'; did you mean 'lat'?"
    ]
    (tmp_path / "late.py").write_text("def late(rows, more): return rows\n")
    assert look(tmp_path) == [
        "transform.function: late needs 2 arguments; it is called with one, the rows"
    ]
    (tmp_path / "late.py").write_text("\ndef late(\n")
    assert look(tmp_path)[0].startswith(f"transform.function: {tmp_path}/late.py:2 is not Python")
