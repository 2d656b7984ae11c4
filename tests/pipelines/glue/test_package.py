"""A pipeline file as a job for AWS Glue; the job definition is given to moto's Glue."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.glue.package import package

FILE = """
[source]
topic = "flights"
bootstrap_servers = "broker:9092"

[sink]
target = "s3://lake/flights"

[delivery]
checkpoint = "s3://lake/checkpoints/flights"
{trigger}

[spark.conf]
"spark.sql.shuffle.partitions" = 8
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "flights.toml"
    made.write_text(FILE.format(trigger="trigger = 'available-now'"))
    return made


def test_the_folder_holds_all_that_is_uploaded(file: Path, tmp_path: Path) -> None:
    made = package(file, tmp_path / "job", "6.0", location="s3://b/ottla", role="r", environ={})

    names = {path.name for path in (tmp_path / "job").iterdir()}
    assert names == {"flights.toml", "flights_glue.py", "job.json", "jars.txt", made.wheel.name}
    assert made.notices == ()
    assert "run(__file__, 'flights.toml')" in made.script.read_text()
    compile(made.script.read_text(), "flights_glue.py", "exec")
    definition = json.loads(made.definition.read_text())
    assert definition["Command"]["Name"] == "glueetl"
    assert definition["DefaultArguments"]["--conf"].endswith("shuffle.partitions=8")
    jars = definition["DefaultArguments"]["--extra-jars"].split(",")
    listed = made.jars.read_text().splitlines()
    assert [jar.rsplit("/", 1)[1] for jar in jars] == [jar.rsplit("/", 1)[1] for jar in listed]


def test_a_pipeline_without_an_end_is_a_streaming_job(tmp_path: Path) -> None:
    file = tmp_path / "flights.toml"
    file.write_text(FILE.format(trigger=""))

    made = package(file, tmp_path / "job", "6.0", environ={})

    definition = json.loads(made.definition.read_text())
    assert definition["Command"]["Name"] == "gluestreaming"
    assert made.notices == ("job.json: replace YOUR-BUCKET and YOUR-GLUE-ROLE",)


def test_a_notice_names_what_cannot_work_on_glue(tmp_path: Path) -> None:
    file = tmp_path / "flights.toml"
    text = FILE.format(trigger="").replace("broker:9092", "localhost:9092")
    file.write_text(text.replace('"s3://lake/flights"', '"./flights"'))

    made = package(file, tmp_path / "job", "6.0", location="s3://b/o", role="r", environ={})

    assert len(made.notices) == 2
    assert "sink.target is a local path" in made.notices[0]
    assert "bootstrap_servers is this machine" in made.notices[1]


@pytest.mark.parametrize(
    ("version", "location", "words"),
    [("5.1", "s3://b/o", "Glue 5.1 is not supported"), ("6.0", "/tmp", "write a folder in S3")],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    file: Path, tmp_path: Path, version: str, location: str, words: str
) -> None:
    with pytest.raises(PipelineError, match=words):
        package(file, tmp_path / "job", version, location=location, environ={})
    assert not (tmp_path / "job").exists()


def test_a_second_package_replaces_the_first(file: Path, tmp_path: Path) -> None:
    for _ in range(2):
        made = package(file, tmp_path / "job", "6.0", environ={})
    assert made.wheel.is_file()


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Any:
    """moto's Glue: it checks the arguments against AWS's own service model and keeps the job."""
    import boto3
    from moto import mock_aws

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    with mock_aws():
        yield boto3.client("glue", region_name="eu-central-1")


def test_glues_api_takes_the_definition(file: Path, tmp_path: Path, glue: Any) -> None:
    made = package(file, tmp_path / "job", "6.0", environ={})
    definition = json.loads(made.definition.read_text())

    glue.create_job(**definition)

    kept = glue.get_job(JobName="flights")["Job"]
    assert {name: kept[name] for name in definition} == definition
