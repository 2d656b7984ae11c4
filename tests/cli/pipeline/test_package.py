"""`ottla pipeline package`."""

from pathlib import Path

import pytest
from tests.cli.pipeline.test_file import TEXT

from ottla.cli.failures import UsageFailed
from ottla.cli.pipeline.package import package_file


def test_a_folder_with_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "flights.toml"
    file.write_text(TEXT)  # its variables are the job's: they are not set here
    package_file(file, "6.0", tmp_path / "job", "s3://lake/ottla", None)
    names = {path.name for path in (tmp_path / "job").iterdir()}
    assert {"flights.toml", "flights_glue.py", "job.json", "jars.txt"} <= names
    assert "s3://lake/ottla" in (tmp_path / "job" / "job.json").read_text()
    said = capsys.readouterr().out
    assert "for AWS Glue 6.0" in said
    assert "flights_glue.py" in said


def test_what_cannot_be_packaged_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "flights.toml"
    file.write_text(TEXT)
    with pytest.raises(UsageFailed, match=r"5\.0"):
        package_file(file, "5.0", tmp_path / "job", None, None)
    with pytest.raises(UsageFailed, match="location"):
        package_file(file, "6.0", tmp_path / "job", "/tmp", None)
    file.write_text(TEXT.replace("topic", "toipc"))
    with pytest.raises(UsageFailed, match="problems"):
        package_file(file, "6.0", tmp_path / "job", None, None)
