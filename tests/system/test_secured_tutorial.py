"""docs/tutorial/secured-broker.md is true: its session on a broker as it says, and its program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.system.test_cli_docs import DOCS, steady, typed_and_shown

from ottla.testing import BrokerProcess

PAGE = DOCS / "tutorial" / "secured-broker.md"
ADDRESS = "127.0.0.1:9092"
PROFILES = "/home/me/.config/ottla/profiles.toml"
LEAST = 15


@pytest.mark.full
def test_every_command_prints_what_the_page_shows(
    new_broker: Callable[..., BrokerProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(profiles))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in ("OTTLA_BOOTSTRAP", "OTTLA_PROFILE", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    broker = new_broker("--secure", data=tmp_path / "ottla-data")

    def run(words: list[str]) -> str:
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
        )
        return (done.stdout + done.stderr).replace(str(profiles), PROFILES)

    commands = list(typed_and_shown(PAGE))
    assert len(commands) >= LEAST
    for command, shown in commands:
        found = run(["bash", "-c", command.replace(ADDRESS, broker.bootstrap)])
        assert steady(found.replace(broker.bootstrap, ADDRESS)) == steady(shown), command

    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert run([sys.executable, "-c", program.replace(ADDRESS, broker.bootstrap)]) == ""
    read = [sys.executable, "-m", "ottla", "consume", "orders", "--profile", "shop"]
    assert run(read) == "order 1\norder 2\n"
