"""Jars that Ivy resolved once are taken from where they are, while they are there."""

from pathlib import Path

import pytest

from ottla.pipelines.spark import resolved

PACKAGES = ["io.delta:delta-spark_2.13:4.0.1", "a:b:1"]


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "jars with a space" / name for name in ("a-1.jar", "b-1.jar")]
    files[0].parent.mkdir()
    for file in files:
        file.write_bytes(b"jar")
    return files


def test_what_was_resolved_is_found_again(tmp_path: Path, jars: list[Path]) -> None:
    resolved.write(tmp_path / "cache", PACKAGES, [jar.as_uri() for jar in jars])

    assert resolved.read(tmp_path / "cache", PACKAGES) == [str(jar) for jar in jars]
    assert resolved.read(tmp_path / "cache", PACKAGES[:1]) is None


def test_the_users_own_jars_are_not_remembered_for_packages(
    tmp_path: Path, jars: list[Path]
) -> None:
    resolved.write(tmp_path, PACKAGES, [jar.as_uri() for jar in jars], [str(jars[1])])

    assert resolved.read(tmp_path, PACKAGES) == [str(jars[0])]


def test_a_jar_that_is_gone_or_torn_is_resolved_again(tmp_path: Path, jars: list[Path]) -> None:
    resolved.write(tmp_path, PACKAGES, [str(jar) for jar in jars])

    jars[1].write_bytes(b"ja")
    assert resolved.read(tmp_path, PACKAGES) is None
    jars[1].unlink()
    assert resolved.read(tmp_path, PACKAGES) is None


def test_jars_that_are_elsewhere_are_not_remembered(tmp_path: Path, jars: list[Path]) -> None:
    resolved.write(tmp_path, PACKAGES, [str(jars[0]), "hdfs://host/b.jar"])

    assert resolved.read(tmp_path, PACKAGES) is None


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a:b:1": 3}', '{"a:b:1": []}'])
def test_a_spoilt_file_is_as_good_as_none(tmp_path: Path, jars: list[Path], content: str) -> None:
    (tmp_path / "resolved.json").write_text(content)
    assert resolved.read(tmp_path, ["a:b:1"]) is None

    resolved.write(tmp_path, PACKAGES, [str(jar) for jar in jars])
    assert resolved.read(tmp_path, PACKAGES) == [str(jar) for jar in jars]


def test_the_number_of_entries_is_limited(tmp_path: Path, jars: list[Path]) -> None:
    for number in range(resolved.MAX_ENTRIES + 1):
        resolved.write(tmp_path, [f"a:b:{number}"], [str(jars[0])])

    assert resolved.read(tmp_path, ["a:b:0"]) is None
    assert resolved.read(tmp_path, [f"a:b:{resolved.MAX_ENTRIES}"]) == [str(jars[0])]
