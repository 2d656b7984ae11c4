"""The commands: loads only the module of the command that was typed, and prints what failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from shutil import get_terminal_size
from typing import Annotated, Any, Final

import typer

from ottla.cli.failures import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_USAGE, Failed
from ottla.cli.help import Command, Group
from ottla.cli.screen import OutputClosed
from ottla.cli.wrong_value import what_is_wrong

# In the order in which a new user needs them. A group's module has `commands`, a typer app; the
# module of a single command has a function of the command's name.
COMMANDS: Final = {
    "serve": "ottla.cli.serve_command",
    "topic": "ottla.cli.topic",
    "produce": "ottla.cli.produce",
    "consume": "ottla.cli.consume",
    "journey": "ottla.cli.journey",
    "group": "ottla.cli.group",
    "transaction": "ottla.cli.transaction",
    "pipeline": "ottla.cli.pipeline",
    "config": "ottla.cli.config",
    "log": "ottla.cli.log",
    "cluster": "ottla.cli.cluster",
    "health": "ottla.cli.health",
}
GROUPS: Final = frozenset({"topic", "group", "transaction", "pipeline", "config", "log", "cluster"})


MIN_PANELS: Final = 78

# What the most similar name would not be.
MEANT: Final = {("ottla serve", "--port"): "--listen 127.0.0.1:PORT"}


class InOrder(Group):
    """Lists commands in the order of COMMANDS; typer would list groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if name in self.commands]


def build(words: Sequence[str], *, completing: bool = False) -> typer.Typer:
    """The app with the command that was typed, or with all commands for help and completion."""
    # Typer's panels truncate words on narrow terminals; its plain help wraps them.
    wide = get_terminal_size().columns >= MIN_PANELS
    app = typer.Typer(
        name="ottla",
        cls=InOrder,
        rich_markup_mode="rich" if wide else None,
        help="Kafka in Python: run a broker, and work with any Kafka broker.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(root)
    typed = typed_command(completed_words() if completing else words)
    for name in [typed] if typed else COMMANDS:
        module = import_module(COMMANDS[name])
        if name in GROUPS:
            for command in module.commands.registered_commands:
                command.cls = Command
            app.add_typer(module.commands, name=name, cls=Group, no_args_is_help=True)
        else:
            app.command(name, cls=Command)(getattr(module, name))
    return app


def typed_command(words: Sequence[str]) -> str | None:
    """The command whose module must be loaded, or None when all are needed."""
    return words[0] if words and words[0] in COMMANDS else None


def completed_words() -> list[str]:
    """The line that the shell wants to complete, without the program's name."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:]


def print_version(wanted: bool) -> None:
    if wanted:
        from ottla import __version__

        print(f"ottla {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def run_command(words: Sequence[str], *, completing: bool = False) -> int:
    """Run the command that was typed and return its exit code. `completing`: a shell asks for
    completions.
    """
    # A terminal that cannot show a character gets an escape sequence, not a traceback.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    command = typer.main.get_command(build(words, completing=completing))
    try:
        code = command.main(args=list(words), prog_name="ottla", standalone_mode=False)
        sys.stdout.flush()
    except Failed as failure:
        failure.print(command_path(words))
        return failure.exit_code
    except typer.TyperException as error:
        return print_usage_error(error, words)
    except typer.Abort:
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (OutputClosed, BrokenPipeError):
        # The reader has gone. Without this, Python would complain about the buffered output on
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    return code if isinstance(code, int) else 0


def command_path(words: Sequence[str]) -> str:
    """The words that name the command, such as `ottla topic create`."""
    names = ["ottla", *words[:1]]
    if words[:1] and words[0] in GROUPS:
        names += words[1:2]
    return " ".join(names)


def print_usage_error(error: typer.TyperException, words: Sequence[str]) -> int:
    """Print what was wrong, and how to get help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ottla"
    if path == "ottla" and words[:1] and words[0] in COMMANDS:
        path = command_path(words)
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        # Rich has already printed the help.
        if message:
            print(message, file=sys.stderr)
        return EXIT_USAGE
    wrong = what_is_wrong(error)
    if wrong:
        message = message.replace(error.message, f"{wrong}.")
    meant = MEANT.get((path, str(getattr(error, "option_name", ""))))
    close = [meant] if meant else getattr(error, "possibilities", None)
    if close:
        message = f"{error.message}. Did you mean {' or '.join(sorted(close))}?"
    print(f"{path}: {message}", file=sys.stderr)
    print(f"  For help: {path} --help", file=sys.stderr)
    return EXIT_USAGE
