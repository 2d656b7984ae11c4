"""docs/cli.md and the tutorials are true: what they show is what is printed, and docs/cli.md names
every command there is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.app import COMMANDS, root
from ottla.cli.command import Group

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "cli.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What is another at every run: times, topic ids, checksums of batches with times in them.
CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"\b1\d{12}\b"), "MS"),
    (re.compile(r'"id": "[^"]{22}"'), '"id": ID'),
    (re.compile(r'"crc": "[0-9a-f]{8}"'), '"crc": CRC'),
    # Of a journey.
    (re.compile(r"(\d{4}-\d\d-\d\d )?\b\d\d:\d\d:\d\d\.\d{3}"), "TIME"),
    (re.compile(r"between TIME and TIME"), "TIME"),
    (re.compile(r"  [+-][0-9.]+ (?:ms|s)\b"), ""),
)
WAITED = "may include librdkafka's 0.5 s"


def steady(text: str) -> list[str]:
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    # How long a record waited for its producer's id depends on the machine, as times do.
    return [line.rstrip() for line in text.splitlines() if WAITED not in line]


def typed_and_shown(page: Path) -> Iterator[tuple[str, str]]:
    """Each command of the page's session with what is shown after it."""
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("cli.md", 30),
        ("getting-started.md", 2),
        pytest.param("tutorial/first-message.md", 4, marks=pytest.mark.full),
        pytest.param("tutorial/first-group.md", 8, marks=pytest.mark.full),
    ],
)
def test_every_command_prints_what_the_page_shows(
    page: str, least: int, new_broker: Callable[..., Any], tmp_path: Path
) -> None:
    broker = new_broker(data=tmp_path / "ottla-data")
    environment = {**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for name in ("COLUMNS", "NO_COLOR"):
        environment.pop(name, None)
    if page.startswith("tutorial/"):
        environment["COLUMNS"] = "100"  # as wide as the site's blocks
    commands = list(typed_and_shown(DOCS / page))
    assert len(commands) >= least
    for command, shown in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=60,
            check=False,
        )
        assert steady(done.stdout + done.stderr) == steady(shown), command


def test_the_page_about_mirrors(new_broker: Callable[..., Any], tmp_path: Path) -> None:
    """It has two clusters, whose profiles are there."""
    brokers = {name: new_broker().bootstrap for name in ("old", "new")}
    profiles = [f'[profiles.{name}]\nbootstrap = "{at}"\n' for name, at in brokers.items()]
    (tmp_path / "profiles.toml").write_text("\n".join(profiles))
    environment = {**os.environ, "OTTLA_PROFILES": str(tmp_path / "profiles.toml")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for name in ("COLUMNS", "NO_COLOR", "OTTLA_BOOTSTRAP", "OTTLA_PROFILE"):
        environment.pop(name, None)
    commands = list(typed_and_shown(DOCS / "mirror.md"))
    assert len(commands) >= 7
    for command, shown in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=60,
            check=False,
        )
        said = steady(done.stdout + done.stderr)
        # Standard error, where it says what it does, comes before the result on a terminal.
        assert sorted(said) == sorted(steady(shown)), command


def test_pages_that_follow_each_other_make_topics_of_their_own() -> None:
    pages = ["getting-started", "tutorial/first-message", "tutorial/first-group"]
    pages += ["tutorial/first-pipeline"]
    text = "".join((DOCS / f"{page}.md").read_text() for page in pages)
    made = re.findall(r"^\$ .*(?:topic create (\w+)|produce (\w+) --create)", text, re.MULTILINE)
    names = [created or produced for created, produced in made]
    assert len(names) >= len(pages)
    assert len(set(names)) == len(names), names


def test_the_program_of_getting_started(broker: Any) -> None:
    page = (DOCS / "getting-started.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    words = ["-c", program.replace("localhost:9092", broker.bootstrap)]
    subprocess.run([sys.executable, *words], check=True, timeout=60)
    read = ["-m", "ottla", "consume", "flights", "--keys", "-b", broker.bootstrap]
    done = subprocess.run([sys.executable, *read], capture_output=True, text=True, timeout=60)
    assert done.stdout == "N384HA\thello again\n", done.stderr


@pytest.mark.parametrize("name", list(COMMANDS))
def test_page_names_every_command(name: str) -> None:
    """The options are in the generated reference (`website/commands.py`)."""
    heading = f"\n## ottla {name}\n"
    text = PAGE.read_text()
    assert heading in text
    section = text[text.index(heading) :].split("\n## ")[1]
    command = root().load(name)
    for inner in command.names() if isinstance(command, Group) else ():
        assert f"`{inner}" in section, f"{name} {inner}"
