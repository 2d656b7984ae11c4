"""`ottla completion`: the script that teaches a shell to complete ottla's words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="Which shell: bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell.

    For bash: ottla completion bash >> ~/.bashrc
    """
    from typer._completion_shared import get_completion_script

    from ottla.cli.main import COMPLETION_VARIABLE
    from ottla.cli.screen import say

    say(
        get_completion_script(
            prog_name="ottla", complete_var=COMPLETION_VARIABLE, shell=shell.value
        )
    )
