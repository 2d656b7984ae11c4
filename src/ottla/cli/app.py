"""The commands: loads only the module of the command that was typed, and prints what failed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from shutil import get_terminal_size
from typing import Annotated, Any, Final, TextIO, cast

import typer

from ottla.cli.failures import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_USAGE, Failed, as_failed
from ottla.cli.help import Command, Group
from ottla.cli.output import Output, OutputClosed, OutputFailed, discard_output
from ottla.cli.profile_option import with_profile
from ottla.cli.wrapping import print_failure
from ottla.cli.wrong_value import what_is_wrong
from ottla.client.errors import ClientError

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
    "bench": "ottla.cli.bench",
    "profile": "ottla.cli.profile",
}
GROUPS: Final = frozenset(
    {"topic", "group", "transaction", "pipeline", "config", "log", "cluster", "bench", "profile"}
)

INNER_GROUPS: Final = frozenset({("log", "stray")})

# What `ottla --help` says of each command: to import all of them takes a third of a second.
SUMMARIES: Final = {
    "serve": "Run a broker until Ctrl-C or SIGTERM.",
    "topic": "Create, list, describe, alter, trim and delete topics.",
    "produce": "Send each line of standard input, or of a file, as a record.",
    "consume": "Print the records of topics, from the beginning to the current end.",
    "journey": "Show what happened to one message.",
    "group": "List, describe, reset and delete consumer groups.",
    "transaction": "List and describe transactions, and end those that hang.",
    "pipeline": "Run pipelines into Delta: run, check, status, stop, rejects, maintain, package.",
    "config": "Show and change the settings of topics and brokers.",
    "log": "Inspect and check a partition's folder; list, put back and delete stray folders.",
    "cluster": "Start, describe and change a cluster.",
    "health": "Check a cluster: exit code 0 if everything works, 1 if not.",
    "bench": "Measure the throughput and latency of a cluster.",
    "profile": "Keep the addresses and settings of clusters, and choose one.",
}

MAX_HELP: Final = 100
"""Columns; longer lines are hard to read."""

HELP: Final = "help"
"""`ottla help topic create` is `ottla topic create --help`."""

# What the most similar name would not be: mostly options of Apache Kafka's scripts.
MEANT: Final = {
    ("ottla serve", "--port"): "--listen 127.0.0.1:PORT",
    ("ottla consume", "--from-beginning"): "--from beginning, which is the default",
    ("ottla consume", "--topic"): "ottla consume TOPIC",
    ("ottla produce", "--topic"): "ottla produce TOPIC",
    ("ottla topic create", "--topic"): "ottla topic create TOPIC",
    ("ottla topic describe", "--topic"): "ottla topic describe TOPIC",
    ("ottla topic delete", "--topic"): "ottla topic delete TOPIC",
    ("ottla group reset", "--to"): "--to-earliest, --to-latest, --to-offset N or --to-time TIME",
    ("ottla group reset", "--to-datetime"): "--to-time TIME",
    ("ottla group reset", "--by-duration"): "--to-time AGE, such as --to-time 2h",
}
EXTRA: Final = re.compile(r"unexpected extra arguments?\S* \(([^ ]+)\)$")
"""What typer says of one word too many."""


class InOrder(Group):
    """Lists commands in the order of COMMANDS; typer would list groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if name in self.commands]


def build(words: Sequence[str], *, completing: bool = False, names: bool = False) -> typer.Typer:
    """The app with the command that was typed, or with all commands. With `names`, those are only
    named, for help, completion, and the nearest name.
    """
    app = typer.Typer(
        name="ottla",
        cls=InOrder,
        rich_markup_mode=None,
        help="Kafka in Python: run a broker, and work with any Kafka broker.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={
            "help_option_names": ["--help", "-h"],
            "terminal_width": min(get_terminal_size().columns, MAX_HELP),
        },
    )
    app.callback()(root)
    if completing:
        words = completed_words()
    typed = typed_command(words)
    if names and COMMANDS.keys().isdisjoint(words):
        for name, summary in SUMMARIES.items():
            app.command(name, cls=Command, help=summary)(named_only)
        return app
    for name in [typed] if typed else COMMANDS:
        module = import_module(COMMANDS[name])
        if name in GROUPS:
            prepare(module.commands)
            app.add_typer(module.commands, name=name, cls=Group, no_args_is_help=True)
        else:
            app.command(name, cls=Command)(with_profile(getattr(module, name)))
    return app


def prepare(commands: typer.Typer) -> None:
    """The commands of a group, and those of the groups in it, as ours."""
    for command in commands.registered_commands:
        command.cls = Command
        assert command.callback is not None
        command.callback = with_profile(command.callback)
    for group in commands.registered_groups:
        group.cls = Group
        assert group.typer_instance is not None
        prepare(group.typer_instance)


def named_only() -> None:
    raise AssertionError("a command without its module is never typed")


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
    if words[:1] == [HELP]:
        words = [*words[1:], "--help"]
    stdout = sys.stdout
    # Also for what typer and rich print.
    sys.stdout = cast(TextIO, Output(stdout))
    try:
        code = carry_out(words, completing=completing)
        return flush_output(words, code)
    finally:
        sys.stdout = stdout


def carry_out(words: Sequence[str], *, completing: bool) -> int:
    """Run the command, print why it failed, and return its exit code."""
    command = typer.main.get_command(build(words, completing=completing, names=True))
    try:
        code = command.main(args=list(words), prog_name="ottla", standalone_mode=False)
    except (Failed, ClientError) as error:
        failure = as_failed(error) if isinstance(error, ClientError) else error
        if isinstance(failure, OutputFailed):
            discard_output()
        failure.print(command_path(words))
        return failure.exit_code
    except typer.TyperException as error:
        return print_usage_error(error, words)
    except (typer.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except (OutputClosed, BrokenPipeError):
        discard_output()
        return EXIT_BROKEN_PIPE
    return code if isinstance(code, int) else 0


def flush_output(words: Sequence[str], code: int) -> int:
    """Write what is still buffered; returns the exit code of the command that ended with `code`."""
    try:
        sys.stdout.flush()
    except OutputClosed:
        discard_output()
        return EXIT_BROKEN_PIPE
    except OutputFailed as failure:
        discard_output()
        failure.print(command_path(words))
        return code or failure.exit_code
    return code


def command_path(words: Sequence[str]) -> str:
    """The words that name the command, such as `ottla topic create`."""
    names = ["ottla", *words[:1]]
    if words[:1] and words[0] in GROUPS:
        names += words[1 : 3 if tuple(words[:2]) in INNER_GROUPS else 2]
    return " ".join(names)


def print_usage_error(error: typer.TyperException, words: Sequence[str]) -> int:
    """Print what was wrong, and how to get help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ottla"
    if path == "ottla" and words[:1] and words[0] in COMMANDS:
        path = command_path(words)
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
        return EXIT_USAGE
    wrong = what_is_wrong(error)
    if wrong:
        message = message.replace(error.message, f"{wrong}.")
    option = str(getattr(error, "option_name", ""))
    meant = joined_option(option, words, context) or MEANT.get((path, option))
    extra = EXTRA.search(error.message)
    if extra and path == "ottla produce":
        meant = f"--file {extra[1]}"
    close = [meant] if meant else getattr(error, "possibilities", None)
    if close:
        message = f"{error.message}. Did you mean {' or '.join(sorted(close))}?"
    print_failure(path, message, f"For help: {path} --help")
    return EXIT_USAGE


def joined_option(option: str, words: Sequence[str], context: Any) -> str | None:
    """`--to-earliest` for `--to earliest` or `--to=earliest`, if the command has such an option."""
    if not option or context is None:
        return None
    known = {name for each in context.command.params for name in each.opts}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, _, value = word.partition("=")
        joined = f"{option}-{value or after}"
        if name == option and joined in known:
            return joined
    return None
