"""The demo's children end with it, and all that they started."""

import os
import signal
import time
from pathlib import Path

import pytest
from demo.processes import Child, DemoError, interrupted_later

SLEEPER = """
import subprocess, sys, time
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(grandchild.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter where it ends as it is read
        return False


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "sleeper.py"


def test_a_child_is_ended_with_all_that_it_started(module: Path, tmp_path: Path) -> None:
    module.write_text(SLEEPER)
    started: list[Child] = []
    child = Child(["sleeper"], tmp_path / "log", started)
    assert started == [child]
    line = child.line(30)
    assert line is not None
    grandchild = int(line)
    assert alive(grandchild)

    child.stop()

    assert not alive(child.pid)
    until = time.monotonic() + 10
    while alive(grandchild) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(grandchild)
    child.stop()  # once more harms nobody


def test_a_child_that_ends_says_where_its_words_are(module: Path, tmp_path: Path) -> None:
    module.write_text("import sys; print('one', flush=True); sys.exit('sorry')")
    child = Child(["sleeper"], tmp_path / "sleeper.log", [])

    assert child.line(30) == "one"
    with pytest.raises(DemoError, match=str(tmp_path / "sleeper.log")):
        child.line(30)
    child.stop()
    assert (tmp_path / "sleeper.log").read_text() == "sorry\n"


def test_a_silent_child_gives_no_line(module: Path, tmp_path: Path) -> None:
    module.write_text("import time; time.sleep(600)")
    child = Child(["sleeper"], tmp_path / "log", [])
    assert child.line(0.05) is None
    child.stop()
    assert not os.path.exists(f"/proc/{child.pid}/exe")


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    steps: list[str] = []
    before = signal.signal(signal.SIGINT, lambda *_: steps.append("interrupted"))
    try:
        with interrupted_later():
            signal.raise_signal(signal.SIGINT)
            steps.append("started")
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["started", "interrupted"]


def test_what_a_child_does_is_shown_until_it_answers(module: Path, tmp_path: Path) -> None:
    module.write_text("import time; time.sleep(600)")
    shown: list[str] = []
    child = Child(["sleeper"], tmp_path / "log", [])
    assert child.answer(0.05, shown.append, "It reads the table") is None
    child.stop()
    assert shown[0] == "It reads the table (0 s)"

    module.write_text("print('answer', flush=True)")
    child = Child(["sleeper"], tmp_path / "log", [])
    assert child.answer(30, shown.append, "It reads the table") == "answer"
    child.stop()
