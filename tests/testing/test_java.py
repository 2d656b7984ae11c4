from __future__ import annotations

from pathlib import Path

import pytest

from ottla.testing.java import find_java


def fake_java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ottla.testing.java.find_java", find_java.__wrapped__)
    monkeypatch.setenv("PATH", f"{tmp_path}/path/bin:/bin")


def test_java_home_overrides_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "home", "17.0.1")
    fake_java(tmp_path / "path", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java.__wrapped__() == str(home)


def test_an_old_java_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "home", "1.8.0_392")
    newer = fake_java(tmp_path / "path", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java.__wrapped__() == str(newer)
