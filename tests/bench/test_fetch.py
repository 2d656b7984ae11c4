import sys
from pathlib import Path

import pytest
from bench.apache_kafka import KafkaJars

from bench import cache, fetch


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_cached_jars_are_not_fetched_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with cache.making(KafkaJars.place()):
        pass
    monkeypatch.setattr(sys, "argv", ["fetch"])
    assert fetch.main() == 0
    assert capsys.readouterr() == ("", "")


def test_a_repository_without_kafka_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="empty"/><resolvers><filesystem name="empty">'
        f'<artifact pattern="{tmp_path}/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    monkeypatch.setattr(sys, "argv", ["fetch", "--ivy-settings", str(settings)])
    assert fetch.main() == 1
    assert "so the tests that need it are skipped" in capsys.readouterr().err
    assert KafkaJars.at_hand() is None
