"""`python -m website.pictures.terminal`: take the pictures of docs/pictures/terminal again.

Each one shows what commands print at a real terminal, with a real broker behind them. So the times
in them are another at every run, and nothing compares them with the code. They load no font.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from ottla.testing import Broker
from website.pages import ROOT

FOLDER: Final = ROOT / "docs" / "pictures" / "terminal"
FONT: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
COMMENT: Final = re.compile(r"\s*<!--.*?-->", re.DOTALL)
FAMILY: Final = "ui-monospace, Menlo, Consolas, monospace"
ROWS: Final = 60
WITHIN_S: Final = 60


class Scene(NamedTuple):
    """Commands that are typed one after the other, of which the last ones are in the picture."""

    title: str
    columns: int
    before: tuple[str, ...]
    shown: tuple[str, ...]


SCENES: Final = {
    "journey.svg": Scene(
        "The journey of a message",
        112,
        (
            "ottla topic create orders --partitions 2",
            "echo 'alice:2 apples' | ottla produce orders --key-separator :",
            "ottla consume orders --group warehouse",
        ),
        ("ottla journey orders --latest",),
    ),
    "group.svg": Scene(
        "A group that is behind",
        84,
        (
            "ottla topic create parcels --partitions 3",
            "seq 1 60 | sed 's/.*/customer-&:parcel &/' | ottla produce parcels -k :",
            "ottla consume parcels --group delivery --max 40",
        ),
        ("ottla topic describe parcels", "ottla group describe delivery"),
    ),
}


def typed(command: str, columns: int, environment: Mapping[str, str], folder: str) -> str:
    """What the command shows at a terminal, with its colours. It has to succeed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        cwd=folder,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break  # the last process that had the terminal open has ended
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    assert process.wait(WITHIN_S) == 0, f"{command}\n{text}"
    return text


def picture(title: str, columns: int, screens: Iterable[tuple[str, str]]) -> str:
    """The commands with what they have shown, as a window in SVG."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    for command, shown in screens:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(shown.rstrip()), soft_wrap=True)
    svg = COMMENT.sub("", FONT.sub("", console.export_svg(title=title)))
    return svg.replace("Fira Code, monospace", FAMILY).replace("arial", "sans-serif")


def taken(scene: Scene) -> str:
    """Play a scene with a broker of its own."""
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap, "TERM": "xterm-256color"}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        for name in ("COLUMNS", "NO_COLOR"):
            environment.pop(name, None)
        for command in scene.before:
            typed(command, scene.columns, environment, folder)
        screens = [
            (command, typed(command, scene.columns, environment, folder)) for command in scene.shown
        ]
    return picture(scene.title, scene.columns, screens)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, scene in SCENES.items():
        (FOLDER / name).write_text(taken(scene))
