"""A pipeline file as the commands take it."""

from pathlib import Path

import pytest

from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.pipeline.file import checked_file, readable_file

TEXT = """
[[pipeline]]
name = "one"
[pipeline.source]
bootstrap_servers = "localhost:9092"
topic = "flights"
[pipeline.sink]
target = "./lake/one"
[pipeline.delivery]
checkpoint = "./cp/one"

[[pipeline]]
name = "two"
[pipeline.source]
bootstrap_servers = "${SERVERS}"
topic = "flights"
[pipeline.sink]
target = "./${LAKE}/two"
[pipeline.delivery]
checkpoint = "./cp/two"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "flights.toml"
    file.write_text(TEXT)
    return file


def test_all_problems_are_lines_of_one_failure(file: Path) -> None:
    with pytest.raises(UsageFailed) as raised:
        checked_file(file, [])
    assert raised.value.message == f"{file} has 2 problems."
    assert raised.value.hint is not None
    assert len(raised.value.hint.splitlines()) == 2


def test_what_only_the_run_needs_may_be_unset_elsewhere(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageFailed, match="SERVERS is not set"):
        readable_file(file, [])
    monkeypatch.setenv("SERVERS", "etl:9092")
    spec = readable_file(file, [])
    assert spec.pipelines[1].source.kafka.bootstrap_servers == "etl:9092"
    with pytest.raises(UsageFailed, match="LAKE is not set"):
        checked_file(file, [])


def test_only_some_pipelines(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "etl:9092")
    monkeypatch.setenv("LAKE", "lake")
    assert [one.name for one in checked_file(file, ["two"]).pipelines] == ["two"]
    with pytest.raises(Failed, match=r"no pipeline 'tow'\. Did you mean 'two'\?"):
        checked_file(file, ["tow"])


def test_what_is_not_there_is_found_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "late.toml"
    one = TEXT.split("[[pipeline]]")[1].replace("[pipeline.", "[")
    file.write_text(one + '[spark]\njars = "nowhere"\n')
    with pytest.raises(UsageFailed, match=r"spark\.jars: there is no file or folder"):
        checked_file(file, [])
    assert readable_file(file, []).pipelines[0].name == "one"
