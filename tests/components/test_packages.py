import os
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from components import packages


def test_a_failing_step_shows_its_last_output(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('cc: no input'); raise SystemExit(2)"]
    with pytest.raises(packages.PackageError, match=r"ended with 2:\ncc: no input"):
        packages.run(command, tmp_path)
    command[-1] = "import time; time.sleep(60)"
    with pytest.raises(packages.PackageError, match="did not end in 0 s"):
        packages.run(command, tmp_path, seconds=0.2)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(packages.PackageError, match="no-such-program is not installed"):
        packages.run(["no-such-program"], tmp_path)


def test_an_archive_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "file", "package/file")
    packages.unpack(tmp_path / "a.tar.gz", tmp_path / "out")
    assert (tmp_path / "out" / "package" / "file").read_text() == "text"


def test_without_root_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing_debian_packages", lambda names: list(names))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(packages.PackageError, match="sudo apt-get install -y libssl-dev"):
        packages.need_debian_packages(["libssl-dev"])


def test_no_missing_packages_means_no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert packages.missing_debian_packages(["libssl-dev"]) == []
    packages.need_debian_packages(["libssl-dev"])


def program(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!{sys.executable}\nimport os, sys, tarfile\n{script}\n")
    file.chmod(0o755)


def test_librdkafka_is_fetched_and_built_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "shipped" / "deps" / "librdkafka"
    source.mkdir(parents=True)
    log = f"open({str(tmp_path / 'log')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')"
    program(source, "configure", f"sys.argv.append('configure in ' + os.getcwd())\n{log}")
    program(
        tmp_path,
        "npm",
        f"{log}\nwith tarfile.open('a.tgz', 'w') as archive:\n"
        f"    archive.add({str(tmp_path / 'shipped')!r}, 'package')\nprint('a.tgz')",
    )
    program(tmp_path, "nice", log)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for _ in range(2):
        built = packages.librdkafka("tool", "it@1", [], "-C", "examples", "tool")
        assert built == tmp_path / "cache" / "ottla" / "tool" / "package" / "deps" / "librdkafka"
    assert (tmp_path / "log").read_text().splitlines() == [
        "pack --silent it@1",
        f"configure in {built}",
        "make -j8 libs",
        "make -j8 -C examples tool",
    ]
    assert capsys.readouterr().out.count("Building tool from it@1") == 1


def test_a_failed_build_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program(tmp_path, "npm", "sys.exit('no such package')")
    for _ in range(2):
        with pytest.raises(packages.PackageError, match="no such package"):
            packages.librdkafka("tool", "it@1", [])
