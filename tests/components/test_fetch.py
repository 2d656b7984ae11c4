import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from components.apache_kafka import VERSION, ZOOKEEPER_VERSION, KafkaJars

from components import cache, fetch, ivy, kafka_streams, packages


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_cached_jars_are_not_fetched_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (KafkaJars.cached_in(), kafka_streams.cached_in()):
        with cache.making(folder):
            pass
    monkeypatch.setattr(sys, "argv", ["fetch"])
    assert fetch.main() == 0
    assert capsys.readouterr() == ("", "")


def test_all_versions_are_fetched_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fetched: list[Sequence[str]] = []

    def fetch_jars(coordinates: Sequence[str], *_: Path | None, alone: bool = False) -> None:
        assert alone == ("kafka-streams" in coordinates[0])
        fetched.append(coordinates)

    monkeypatch.setattr(fetch, "ENGINES", {})
    monkeypatch.setattr(ivy, "fetch", fetch_jars)
    monkeypatch.setattr(sys, "argv", ["fetch", "--all"])
    assert fetch.main() == 0
    assert fetched == [
        [f"org.apache.kafka:{name}:{version}" for name in ("kafka_2.13", "kafka-tools")]
        for version in (VERSION, ZOOKEEPER_VERSION)
    ] + [[f"org.apache.kafka:kafka-streams:{VERSION}"]]
    assert KafkaJars.at_hand(ZOOKEEPER_VERSION) is not None
    assert "Fetching Apache Kafka 3.9.1" in capsys.readouterr().out


def test_engines_are_fetched_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fetched: list[str] = []

    def refuse(_: Path | None) -> None:
        raise packages.PackageError("no such package")

    for version in (VERSION, ZOOKEEPER_VERSION):
        with cache.making(KafkaJars.cached_in(version)):
            pass
    with cache.making(kafka_streams.cached_in()):
        pass
    engines = {"One": lambda _: fetched.append("one"), "Two": refuse}
    monkeypatch.setattr(fetch, "ENGINES", engines)
    monkeypatch.setattr(sys, "argv", ["fetch"])
    assert fetch.main() == 0
    assert fetched == []
    monkeypatch.setattr(sys, "argv", ["fetch", "--all"])
    assert fetch.main() == 1
    assert fetched == ["one"]
    said = capsys.readouterr().err
    assert "Two could not be fetched, so the tests that need it are skipped: no such" in said


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
