"""The job on AWS Glue; tests/system/test_glue_package.py runs it with Spark."""

from pathlib import Path

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.glue.job import run


def test_a_file_that_was_not_uploaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(PipelineError, match=r"There is no flights\.toml in .* or /scripts"):
        run("/scripts/flights_glue.py", "flights.toml")
