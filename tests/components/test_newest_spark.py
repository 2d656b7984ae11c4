"""The jars of the newest Spark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from components import ivy, newest_spark


def test_jars_that_spark_ships_are_left_out(tmp_path: Path) -> None:
    own = ivy.ivy_jar().name.rsplit("-", 1)[0]
    for name in (f"{own}-9.9.jar", "delta-spark_4.2_2.13-4.4.0.jar"):
        (tmp_path / name).touch()

    newest_spark.keep_what_spark_lacks(tmp_path)

    assert [jar.name for jar in tmp_path.iterdir()] == ["delta-spark_4.2_2.13-4.4.0.jar"]


def test_an_older_token_provider_replaces_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def fetch(coordinates: Sequence[str], *_: Any, **__: Any) -> None:
        asked.extend(coordinates)
        if coordinates[0].endswith(newest_spark.SPARK):
            raise ivy.FetchError("not found")

    monkeypatch.setattr(ivy, "fetch", fetch)

    newest_spark.fetch_tokens(tmp_path, None)

    assert [coordinate.rsplit(":", 1)[1] for coordinate in asked] == ["4.2.0", "4.0.0"]
    assert "4.0.0 is used" in capsys.readouterr().err
