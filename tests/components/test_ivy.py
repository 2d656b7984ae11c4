from pathlib import Path
from xml.etree import ElementTree

import pytest

from components import ivy, java


def test_the_module_file_names_each_package_with_dependencies() -> None:
    root = ElementTree.fromstring(ivy.module_file(["org.apache.kafka:kafka_2.13:4.3.1", "a:b:1"]))
    wanted = [dict(one.attrib) for one in root.iter("dependency")]
    assert wanted[0]["org"] == "org.apache.kafka"
    assert [one["name"] for one in wanted] == ["kafka_2.13", "b"]
    assert {one["conf"] for one in wanted} == {"default->default"}


def test_pyspark_ships_ivy() -> None:
    pytest.importorskip("pyspark")
    assert ivy.ivy_jar().is_file()


def test_without_pyspark_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "find_spec", lambda name: None)
    with pytest.raises(ivy.FetchError, match="pip install"):
        ivy.ivy_jar()


def test_a_failed_fetch_shows_ivys_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "java"
    command.write_text("#!/bin/sh\necho 'UNRESOLVED DEPENDENCIES: a#b;1: not found'\n")
    command.chmod(0o755)
    monkeypatch.setattr(java, "find", lambda: str(command))
    monkeypatch.setattr(ivy, "ivy_jar", lambda: Path("ivy.jar"))
    with pytest.raises(ivy.FetchError, match="a#b;1: not found"):
        ivy.fetch(["a:b:1"], tmp_path / "lib")
