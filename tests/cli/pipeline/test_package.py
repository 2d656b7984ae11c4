"""`ottla pipeline package`."""

from pathlib import Path

import pytest
from tests.cli.pipeline.test_file import TEXT

from ottla.cli.app import carry_out


def package(file: Path, *words: str) -> int:
    return carry_out(["pipeline", "package", str(file), *words])


def test_a_folder_with_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "flights.toml"
    file.write_text(TEXT)  # its variables are the job's: they are not set here
    to = ("--to", str(tmp_path / "job"))
    assert package(file, "--glue", "6.0", *to, "--location", "s3://lake/ottla") == 0
    names = {path.name for path in (tmp_path / "job").iterdir()}
    assert {"flights.toml", "flights_glue.py", "job.json", "jars.txt"} <= names
    assert "s3://lake/ottla" in (tmp_path / "job" / "job.json").read_text()
    said = capsys.readouterr().out
    assert "for AWS Glue 6.0" in said
    assert "flights_glue.py" in said


def test_what_cannot_be_packaged_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "flights.toml"
    file.write_text(TEXT)
    assert package(file, "--glue", "5.0") == 2
    assert "5.0" in capsys.readouterr().err
    assert package(file, "--glue", "6.0", "--location", "/tmp") == 2
    assert "location" in capsys.readouterr().err
    file.write_text(TEXT.replace("topic", "toipc"))
    assert package(file, "--glue", "6.0") == 2
    assert "problems" in capsys.readouterr().err
