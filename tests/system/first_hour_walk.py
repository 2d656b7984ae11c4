"""Types what a page says, line by line, at a terminal of a given width or without one, and checks
what every line of output must be.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from tests.test_tidy import UNCLEAR_WORDS

ROOT = Path(__file__).parents[2]
WITHIN_S = 120
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
LOGGED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ ")
OLD_WORDING = (*UNCLEAR_WORDS, "is stronger than", "where to is not said", "there already")
"""How Ottla spoke before it was edited in plain words."""


class Screen(NamedTuple):
    """What a command meets: the width, and whether it is a terminal or a pipe."""

    columns: int
    is_terminal: bool

    def __str__(self) -> str:
        return f"{'terminal' if self.is_terminal else 'pipe'} of {self.columns}"


def blocks(page: Path, language: str) -> list[str]:
    """The page's blocks of this language; `` for those without one."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def typed(page: Path) -> Iterator[str]:
    """The commands after `$ ` in the page's sessions."""
    for block in blocks(page, "console"):
        yield from re.findall(r"^\$ (.*)$", block, re.MULTILINE)


def lines_of(block: str) -> list[str]:
    """The lines of a block that is typed as it is, without their comments."""
    return [line.partition("  #")[0].strip() for line in block.splitlines() if line.strip()]


def check(shown: str, screen: Screen, command: str) -> None:
    """No traceback, no line that is too long, nothing in the old wording."""
    assert "Traceback" not in shown, f"{command} ({screen})\n{shown}"
    for words in OLD_WORDING:
        assert words not in shown.lower(), f"{command} ({screen})\n{shown}"
    if not screen.is_terminal:
        return
    for line in shown.splitlines():
        # A command to type stays in one line: it is copied. The log is not for reading here.
        if not re.search(r"ottla |export ", line) and not LOGGED.match(line):
            assert cell_len(line) <= screen.columns, f"{command} ({screen})\n{line}"


class Shell:
    """A shell in a folder, with a screen."""

    def __init__(self, folder: Path, environment: Mapping[str, str], screen: Screen) -> None:
        self.folder = folder
        self.screen = screen
        self.environment = {**environment, "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            self.environment.pop(name, None)
        if not screen.is_terminal:
            self.environment["COLUMNS"] = str(screen.columns)

    def run(self, command: str, within_s: float = WITHIN_S) -> str:
        """What the command shows. It has to succeed."""
        running = Running(self, command)
        code = running.wait(within_s)
        assert code == 0, f"{command} ({self.screen}): exit code {code}\n{running.shown}"
        return running.shown


class Running:
    """A command that runs in such a shell."""

    def __init__(self, shell: Shell, command: str) -> None:
        self.command = command
        self.screen = shell.screen
        self._read = b""
        if self.screen.is_terminal:
            self._ours, theirs = pty.openpty()
            size = struct.pack("HHHH", 50, self.screen.columns, 0, 0)
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        else:
            self._ours, theirs = os.pipe()
        os.set_blocking(self._ours, False)
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            cwd=shell.folder,
            env=shell.environment,
            start_new_session=True,
        )
        os.close(theirs)

    @property
    def shown(self) -> str:
        """What it has shown so far, without colours."""
        try:
            while more := os.read(self._ours, 65536):
                self._read += more
        except BlockingIOError:
            pass
        except OSError:
            pass  # a terminal that nobody has open any more
        text = self._read.decode(errors="replace").replace("\r\n", "\n")
        return ESCAPE.sub("", text)

    def wait_for(self, words: str, within_s: float = WITHIN_S) -> None:
        """Wait until it has shown these words."""
        until = time.monotonic() + within_s
        while words not in self.shown.replace("\n", " "):
            assert self.process.poll() is None, self.shown
            assert time.monotonic() < until, f"{self.command} has not shown {words!r}\n{self.shown}"
            time.sleep(0.05)

    def wait(self, within_s: float = WITHIN_S) -> int:
        """Its exit code, once its output is checked."""
        until = time.monotonic() + within_s
        while self.process.poll() is None:
            # A full pipe would stop it.
            assert self.shown is not None
            assert time.monotonic() < until, f"{self.command} did not end\n{self.shown}"
            time.sleep(0.02)
        check(self.shown, self.screen, self.command)
        code = self.process.returncode
        assert isinstance(code, int)
        return code

    def interrupt(self) -> int:
        """Ctrl-C: its exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.wait()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(WITHIN_S)
        os.close(self._ours)
