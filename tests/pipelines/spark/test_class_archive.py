"""The class archive of Spark's JVM, made by a real JVM that runs a small program."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ottla.pipelines.spark import class_archive
from ottla.pipelines.spark.class_archive import ClassArchive
from ottla.pipelines.spark.jvm.context import spark_home


@pytest.fixture
def java() -> Path:
    """A Java with an archive of its own classes, as every JDK has; the one of PyPI has none."""
    found = shutil.which("java")
    if found is None or class_archive._runtime(Path(found)) is None:
        pytest.skip("no Java on the PATH with an archive of its own")
    return Path(found)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Spark home with one jar that can be run: Ivy's."""
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    ivy = next((spark_home() / "jars").glob("ivy-*.jar"))
    shutil.copy(ivy, tmp_path / "spark" / "jars" / "ivy.jar")
    (tmp_path / "cache").mkdir()
    return tmp_path / "spark"


def find(java: Path, home: Path, **environ: str) -> ClassArchive | None:
    return class_archive.find(home.parent / "cache", java, [], home, "", environ)


def run(archive: ClassArchive, home: Path, *more: str) -> subprocess.Popen[bytes]:
    options = [*archive.options.split(), *more]
    command: list[str | Path] = [
        archive.java,
        *options,
        "-cp",
        f"{home}/jars/ivy.jar",
        "org.apache.ivy.Main",
    ]
    return subprocess.Popen([*command, "-version"], stdout=subprocess.PIPE)


def finish(archive: ClassArchive, home: Path, jvm: int) -> Path | None:
    class_path = f"{home}/jars/ivy.jar"
    return class_archive.finish(jvm, archive.file, archive.key, archive.java, class_path)


def make(java: Path, home: Path) -> ClassArchive:
    first = find(java, home)
    assert first is not None
    assert not first.is_ready
    process = run(first, home)
    process.communicate(timeout=60)
    assert finish(first, home, process.pid)
    ready = find(java, home)
    assert ready is not None
    return ready


def test_the_first_run_makes_it_and_the_next_uses_it(java: Path, home: Path) -> None:
    ready = make(java, home)

    assert ready.is_ready
    process = run(ready, home, "-Xshare:on", "-Xlog:class+load=info")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    loaded = next(line for line in said.decode().splitlines() if "org.apache.ivy.Main " in line)
    assert "shared objects file (top)" in loaded


def test_it_is_made_again_when_a_jar_or_an_option_changes(java: Path, home: Path) -> None:
    ready = make(java, home)

    other = class_archive.find(ready.file.parent, java, [], home, "-Xmx1g", {})
    assert other is not None
    assert not other.is_ready
    os.utime(home / "jars" / "ivy.jar", (1, 1))
    changed = find(java, home)
    assert changed is not None
    assert not changed.is_ready
    assert changed.key not in (ready.key, other.key)


@pytest.mark.parametrize("damage", ["cut", "changed", "none"])
def test_one_that_is_not_whole_is_removed(
    java: Path, home: Path, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM that maps a truncated archive dies, so it must never get its name."""
    folder = tmp_path / "program"
    folder.mkdir()
    monkeypatch.chdir(folder)
    first = find(java, home)
    assert first is not None
    process = run(first, home)
    process.communicate(timeout=60)
    content = bytearray(first.file.read_bytes())
    first.file.unlink()
    if damage == "cut":
        first.file.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        content[len(content) // 2] ^= 0xFF
        first.file.write_bytes(content)

    assert finish(first, home, process.pid) is None
    assert list(first.file.parent.iterdir()) == []
    assert list(folder.iterdir()) == []


def test_one_that_lost_its_end_is_not_used(java: Path, home: Path) -> None:
    ready = make(java, home)
    ready.file.chmod(0o644)
    os.truncate(ready.file, 1000)

    again = find(java, home)

    assert again is not None
    assert not again.is_ready
    assert not ready.file.exists()


def test_what_a_killed_session_left_is_removed(java: Path, home: Path) -> None:
    first = find(java, home)
    assert first is not None
    left = first.file.with_name(f"archive-{first.key}.999999999.new")
    left.touch()
    assert find(java, home) is None  # its JVM may still be writing

    before = time.time() - class_archive.WRITTEN_WITHIN_S - 1
    os.utime(left, (before, before))
    assert find(java, home) == first
    assert not left.exists()


def test_old_archives_are_removed(tmp_path: Path) -> None:
    for number in range(4):
        file = tmp_path / f"archive-{number}.1.jsa"
        file.touch()
        os.utime(file, (number, number))

    class_archive.remove_old(tmp_path)

    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "archive-2.1.jsa",
        "archive-3.1.jsa",
    ]


def test_it_can_be_switched_off(java: Path, home: Path) -> None:
    assert find(java, home, OTTLA_CLASS_ARCHIVE="off") is None
    assert find(java, home, HADOOP_CONF_DIR="/etc/hadoop") is None
    folder = home.parent / "cache"
    assert class_archive.find(folder, java, [], home, "-XX:SharedArchiveFile=x", {}) is None
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").touch()
    assert find(java, home) is None


def test_a_java_agent_gets_none(java: Path, home: Path) -> None:
    agent = "-javaagent:/opt/metrics.jar=9404"

    assert class_archive.find(home.parent / "cache", java, [], home, agent, {}) is None
    assert find(java, home, JAVA_TOOL_OPTIONS=agent) is None
    assert find(java, home, JAVA_TOOL_OPTIONS="-Xmx1g") is not None


def test_a_java_without_an_archive_of_its_own_is_left_alone(home: Path, tmp_path: Path) -> None:
    slim = tmp_path / "slim" / "bin" / "java"
    slim.parent.mkdir(parents=True)
    slim.touch()

    assert find(slim, home) is None
