"""The sdist and the wheel that would be published, each installed and used in a bare virtual
environment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from pathlib import Path

import pytest

from ottla import __version__
from ottla.testing.ports import HOST, free_ports

pytestmark = [pytest.mark.full, pytest.mark.timeout(1_800)]

ROOT = Path(__file__).parents[2]
BUILD_WITHIN_S = 900
WITHIN_S = 120
# What is installed says of itself, as JSON.
LOOK = """
import json
from importlib.metadata import entry_points, metadata
import ottla.pipelines, ottla.testing
from ottla.accelerator import why_from_source
from ottla.log import log
(command,) = entry_points(group="console_scripts", name="ottla")
(plugin,) = entry_points(group="pytest11", name="ottla")
print(json.dumps({
    "file": ottla.__file__,
    "version": metadata("ottla")["Version"],
    "command": command.load().__module__,
    "plugin": plugin.value,
    "is_compiled": why_from_source() is None and log.__file__.endswith(".so"),
}))
"""


def run(*words: object, cwd: Path, within_s: float = WITHIN_S, **environment: str) -> str:
    """What a command prints; it has to succeed, without the developer's PYTHONPATH."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within_s,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what is in the sdist alone, with the compiled modules."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "made")
    run(*command, cwd=source, within_s=BUILD_WITHIN_S)
    (made,) = (folder / "made").iterdir()
    if sys.platform != "linux":
        return made
    # As `make packages` does.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    repair = (sys.executable, "-m", "auditwheel", "repair", "-w", folder / "repaired", made)
    run(*repair, cwd=folder, PATH=path)
    (repaired,) = (folder / "repaired").iterdir()
    return repaired


def installed(made: Path, folder: Path, **environment: str) -> Path:
    """A virtual environment with this package and what it needs; returns its `bin`."""
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    command = (python, "-m", "pip", "install", "--quiet", made)
    run(*command, cwd=folder, within_s=BUILD_WITHIN_S, **environment)
    return python.parent


@contextmanager
def serving(programs: Path, folder: Path) -> Iterator[str]:
    """`ottla serve` in this folder; its address. Ctrl-C has to end it well."""
    (port,) = free_ports(1)
    command = [str(programs / "ottla"), "serve", "--listen", f"{HOST}:{port}"]
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=said, text=True
        )
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready.startswith(f"Ottla is ready on {HOST}:{port}"), ready
            yield f"{HOST}:{port}"
            process.send_signal(signal.SIGINT)
            assert process.wait(WITHIN_S) == 0, (folder / "said").read_text()
        finally:
            process.kill()
            process.communicate()


def use(programs: Path, folder: Path, *, is_compiled: bool) -> None:
    """What the first user does with it."""
    found = json.loads(run(programs / "python", "-c", LOOK, cwd=folder))
    assert Path(found.pop("file")).is_relative_to(programs.parent)
    assert found == {
        "version": __version__,
        "command": "ottla.cli.main",
        "plugin": "ottla.testing.plugin",
        "is_compiled": is_compiled,
    }
    assert run(programs / "ottla", "--version", cwd=folder) == f"ottla {__version__}\n"
    run(programs / "python", "-m", "pip", "check", cwd=folder)
    (folder / "lines").write_text("one\ntwo\n")
    with serving(programs, folder) as address:
        for words, said in (
            (("topic", "create", "first"), "Created topic first"),
            (("produce", "first", "--file", "lines"), "Delivered 2 records"),
            (("consume", "first"), "one\ntwo\n"),
            (("journey", "first", "0", "1"), "Retention"),
        ):
            shown = run(programs / "ottla", *words, cwd=folder, OTTLA_BOOTSTRAP=address)
            assert said in shown


def test_the_sdist_holds_the_sources_and_nothing_built(sdist: Path) -> None:
    assert sdist.name == f"ottla-{__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "LICENSE", "src/ottla/py.typed"} <= names
    assert [name for name in names if name.endswith((".so", ".pyc", ".jar"))] == []
    assert [name for name in names if name.startswith((".venv", ".git/"))] == []


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (described,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(described).decode())
    assert {name.split("/")[0] for name in names} == {"ottla", described.split("/")[0]}
    assert {"ottla/py.typed", "ottla/cli/main.py", "ottla/testing/plugin.py"} <= set(names)
    # Beside each compiled module lies its source, for tracebacks and for OTTLA_PURE_PYTHON.
    built = {name.split(".")[0] for name in names if name.endswith(".so")}
    assert "ottla/log/log" in built
    assert {f"{name}.py" for name in built if not name.endswith("__mypyc")} <= set(names)
    assert "-py3-none-any" not in wheel.name
    if sys.platform == "linux":  # PyPI refuses the tag linux_*
        assert "-manylinux" in wheel.name
    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Summary"]
    required = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert any(each.startswith("confluent-kafka") for each in required)
    assert not any(each.startswith("pyspark") for each in required)


def test_the_wheel_installs_and_works(wheel: Path, tmp_path: Path) -> None:
    use(installed(wheel, tmp_path), tmp_path, is_compiled=True)


def test_the_sdist_installs_and_works(sdist: Path, tmp_path: Path) -> None:
    """From Python alone: the other test compiles, from the same sources."""
    programs = installed(sdist, tmp_path, OTTLA_PURE_PYTHON="1")
    use(programs, tmp_path, is_compiled=False)
