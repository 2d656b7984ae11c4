"""The tutorial of the first pipeline does what it says, typed line by line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-pipeline.md"
BLOCK = re.compile(r"^```(console|toml|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITHIN_S = 300

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]


def rows_of(table: Path) -> int:
    """The number of rows in the files that the table's commits have added."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    return sum(json.loads(line["add"]["stats"])["numRecords"] for line in lines if "add" in line)


def test_tutorial_writes_each_row_once(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    with serve(tmp_path_factory.mktemp("broker") / "data") as bootstrap:
        environment = {**os.environ, "OTTLA_BOOTSTRAP": bootstrap}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        printed: dict[str, str] = {}
        for kind, block in BLOCK.findall(PAGE.read_text()):
            if kind == "toml":
                file = tmp_path / "delays.toml"
                file.write_text(block.replace("localhost:9092", bootstrap))
                continue
            lines = re.findall(r"^\$ (.*)$", block, re.MULTILINE) if kind == "console" else None
            for command in lines if lines is not None else block.splitlines():
                if command.startswith("pip install"):
                    continue
                done = subprocess.run(
                    ["bash", "-c", command],
                    capture_output=True,
                    text=True,
                    cwd=tmp_path,
                    env=environment,
                    timeout=WITHIN_S,
                    check=False,
                )
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
                printed[command.partition("#")[0].strip()] = done.stdout
        again = subprocess.run(
            ["bash", "-c", "ottla pipeline run delays.toml"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=WITHIN_S,
            check=False,
        )
        assert again.returncode == 0, again.stdout + again.stderr
    assert rows_of(tmp_path / "lake" / "late") == 1
    assert rows_of(tmp_path / "lake" / "late_rejected") == 1
    journey = printed["ottla journey delays 0 0"]
    assert re.search(r"in Delta version \d", journey), journey
    assert "rejected:" not in journey
    journey = " ".join(printed["ottla journey delays 0 2"].replace("│", " ").split())
    said = "rejected: value is not a JSON object of the schema; kept in late_rejected"
    assert said in journey, journey
    assert "in Delta version" not in journey
