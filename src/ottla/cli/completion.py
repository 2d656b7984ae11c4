"""What a shell and ottla say to each other, so that the shell completes ottla's words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

# What needs click is imported late: `ottla serve` starts without it.

PROGRAM: Final = "ottla"
COMPLETION_VARIABLE: Final = "_OTTLA_COMPLETE"
"""Names the shell that asks for completions, as click defines it: `bash_complete`."""
SHELLS: Final = ("bash", "zsh", "fish")


def shell_in_use() -> str:
    """The shell that started this process, or else the user's own. Raises Failed."""
    from ottla.cli.failures import Failed

    try:
        parent = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    except OSError:  # not on Linux
        parent = ""
    own = Path(os.environ.get("SHELL", "")).name
    for name in (parent, own):
        if name in SHELLS:
            return name
    raise Failed(
        f"there is no completion for {own or 'this shell'}, only for {', '.join(SHELLS)}.",
        "To choose another, start ottla from it, or set SHELL.",
    )


def complete(root: click.Command) -> int:
    """Print what the shell may offer; returns the exit code."""
    from click.shell_completion import shell_complete

    instruction = os.environ[COMPLETION_VARIABLE]
    return shell_complete(root, {}, PROGRAM, COMPLETION_VARIABLE, instruction)


def script(root: click.Command, shell: str) -> str:
    """What the shell reads to complete `ottla`."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    return kind(root, {}, PROGRAM, COMPLETION_VARIABLE).source()


def show(root: click.Command) -> None:
    """Print the script of the shell in use."""
    from ottla.cli.screen import write

    write(script(root, shell_in_use()))


def install(root: click.Command) -> None:
    """Write the script where the shell finds it, and name it in the shell's own file."""
    from ottla.cli.failures import Failed
    from ottla.cli.screen import say

    shell, home = shell_in_use(), Path.home()
    file, start, lines = {
        "bash": (
            home / ".bash_completions" / f"{PROGRAM}.sh",
            home / ".bashrc",
            f"source '{home}/.bash_completions/{PROGRAM}.sh'",
        ),
        "zsh": (
            home / ".zfunc" / f"_{PROGRAM}",
            home / ".zshrc",
            "fpath+=~/.zfunc; autoload -Uz compinit; compinit",
        ),
        "fish": (home / ".config" / "fish" / "completions" / f"{PROGRAM}.fish", None, ""),
    }[shell]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script(root, shell))
        if start is not None:
            present = start.read_text() if start.exists() else ""
            if lines not in present:
                start.write_text(f"{present}\n{lines}\n")
    except OSError as error:
        raise Failed(f"cannot write {error.filename}: {error.strerror}.") from None
    say(f"{shell} completion installed in {file}.")
    say("It works in a new terminal.")
