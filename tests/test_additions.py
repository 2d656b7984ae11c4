"""A command, a setting and a sink are added as CONTRIBUTING.md says, by the files that it names.

Each test copies the source, adds what a newcomer would add, and asks the program for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ottla

COMMAND = '''
"""`ottla topic rename`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON, topic_argument
from ottla.cli.rows import emit


@command()
@topic_argument()
@AS_JSON
@cluster_options
def rename(cluster: Cluster, topic: str, as_json: bool) -> None:
    """Give a topic another name."""
    emit([], as_json=as_json, none=f"{topic} keeps its name.")
'''
SETTING = """
    rename_max_tries = integer(
        "rename.max.tries", 3, "How often a name is tried.", at_least(1)
    )
"""
PACKAGE = '''
"""A list in memory."""

from ottla.pipelines.sinks.memory.to_memory import MemorySpec, to_memory

__all__ = ["MemorySpec", "to_memory"]
'''
SINK = '''
"""`to_memory`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import LakeOptions


@dataclass(frozen=True, slots=True)
class MemorySpec(LakeOptions):
    """A list, with `to_memory()`'s arguments."""

    title: ClassVar[str] = "`[sink]`: a list"
    formats: ClassVar[tuple[str, ...]] = ("memory",)
    others: ClassVar[str] = "is not for a list: leave it out"

    format: str = option("the kind of the list", default="memory")
    most: int = option("how many rows it holds", "count", default=7)


def to_memory(df, target, *, checkpoint):
    """Write rows to a list."""
    return MemorySpec.start("to_memory", locals())
'''
FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "numbers"
schema = "n INT"
[sink]
target = "./list"
format = "memory"
most = 3
[delivery]
checkpoint = "./cp/numbers"
"""


class Source:
    """A copy of Ottla's source, and the program that runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        left_out = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(Path(ottla.__file__).parent, folder / "ottla", ignore=left_out)

    def add(self, name: str, text: str) -> None:
        file = self.folder / "ottla" / name
        file.parent.mkdir(exist_ok=True)
        assert not file.exists()
        file.write_text(text.lstrip())

    def insert(self, name: str, before: str, text: str) -> None:
        file = self.folder / "ottla" / name
        head, found, tail = file.read_text().partition(before)
        assert found
        file.write_text(f"{head}{text}{found}{tail}")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            env=os.environ | {"PYTHONPATH": str(self.folder), "OTTLA_PURE_PYTHON": "1"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def test_a_command_is_one_file(source: Source) -> None:
    source.add("cli/topic/rename.py", COMMAND)
    assert "Give a topic another name." in source.run("-m", "ottla", "topic", "--help")
    assert "TOPIC" in source.run("-m", "ottla", "topic", "rename", "--help")


def test_a_setting_is_one_attribute(source: Source) -> None:
    source.insert("config/topic.py", "    preallocate = boolean(", SETTING)
    shutil.copy(Path(__file__).parents[1] / "docs" / "configuration.md", source.folder / "page.md")
    source.run("-m", "ottla.config.documentation", "page.md")
    assert "rename.max.tries" in (source.folder / "page.md").read_text()


def test_a_sink_is_a_folder_and_a_line(source: Source) -> None:
    source.add("pipelines/sinks/memory/__init__.py", PACKAGE)
    source.add("pipelines/sinks/memory/to_memory.py", SINK)
    source.insert(
        "pipelines/sinks/registered.py",
        "from ottla.pipelines.sinks.postgresql",
        "from ottla.pipelines.sinks.memory import *\n",
    )
    source.run("-m", "ottla.pipelines.file.reference", "page.md")
    assert "how many rows it holds" in (source.folder / "page.md").read_text()
    (source.folder / "numbers.toml").write_text(FILE)
    script = (
        "from pathlib import Path; from ottla.pipelines import to_memory;"
        "from ottla.pipelines.file.read import read_file;"
        "print(read_file(Path('numbers.toml'), {}).pipelines[0].sink)"
    )
    assert "most=3" in source.run("-c", script)
