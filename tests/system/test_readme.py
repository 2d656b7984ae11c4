"""What the README says to type works as it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import BrokerProcess

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
WITHIN_S = 180


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_make_target_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_first_records_and_a_pipeline(broker: BrokerProcess, tmp_path: Path) -> None:
    """The commands of the second terminal in their order; each block ends or stays in front."""
    assert [block for block in blocks("") if "ottla serve" in block] == [
        "ottla serve --data ./ottla-data\n"
    ]
    (commands,) = [block for block in blocks("") if "ottla topic create" in block]
    bin_folder = Path(sys.executable).parent
    environment = os.environ | {
        "OTTLA_BOOTSTRAP": broker.bootstrap,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
    }
    for line in commands.splitlines():
        done = subprocess.run(
            line, shell=True, env=environment, capture_output=True, text=True, timeout=WITHIN_S
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        if line.startswith("ottla consume"):
            assert "hello" in done.stdout
        if line.startswith("ottla journey"):
            assert "N384HA" in done.stdout


@pytest.mark.spark
def test_python_example(broker: BrokerProcess, tmp_path: Path) -> None:
    (example,) = blocks("python")
    name = "readme"
    code = example.replace("localhost:9092", broker.bootstrap).replace('"flights"', f'"{name}"')
    make = ["-m", "ottla", "topic", "create", name, "--bootstrap", broker.bootstrap]
    subprocess.run([sys.executable, *make], check=True, timeout=WITHIN_S)
    put = ["-m", "ottla", "produce", name, "--bootstrap", broker.bootstrap]
    subprocess.run([sys.executable, *put], input=b"one\ntwo\n", check=True, timeout=WITHIN_S)
    count = 'print("rows", spark.read.format("delta").load("./lake/flights").count())'
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{count}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert "rows 2" in done.stdout, done.stderr[-2000:]
