"""The commands: loads only the module of the command that was typed, and prints what failed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, Final, cast

import click

from ottla.cli.command import Group, command_in
from ottla.cli.completion import PROGRAM, complete, install, show
from ottla.cli.failures import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_USAGE, as_failed
from ottla.cli.output import OutputClosed, OutputFailed, discard_output, screen_of
from ottla.cli.wrapping import print_failure
from ottla.wording.errors import ReportedError
from ottla.wording.nearest import nearest

COMMANDS: Final = {
    "serve": "Run a broker until Ctrl-C or SIGTERM.",
    "topic": "Create, list, describe, alter, trim and delete topics.",
    "produce": "Send each line of standard input, or of a file, as a record.",
    "consume": "Print the records of topics, from the beginning to the current end.",
    "journey": "Show what happened to one message.",
    "group": "List, describe, reset and delete consumer groups.",
    "transaction": "List and describe transactions, and end those that hang.",
    "mirror": "Mirror another Kafka's topics into this one, exactly once, until Ctrl-C.",
    "pipeline": "Run pipelines: run, check, status, stop, rejects, replay, maintain, package.",
    "config": "Show and change the settings of topics, groups and brokers.",
    "user": "Add, list, describe and delete users with a password (SCRAM).",
    "acl": "Add, list and delete ACLs, and say which one decides.",
    "quota": "Add, list, describe and delete quotas of users, client ids and addresses.",
    "certificate": "Make an authority and certificates for development, and show any certificate.",
    "log": "Inspect and check a partition's folder; list, put back and delete stray folders.",
    "cluster": "Start, describe and change a cluster.",
    "health": "Check a cluster: exit code 0 if everything works, 1 if not.",
    "console": "Show the cluster in a browser until Ctrl-C.",
    "bench": "Measure the throughput and latency of a cluster.",
    "profile": "Keep the addresses and settings of clusters, and choose one.",
}
"""In the order in which a new user needs them, with what `ottla --help` says of each: to import all
of them takes a third of a second. Each is a module or, for a group, a package beside this file.
"""

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
    ("ottla group reset", "--to"): "--to-earliest, --to-latest, --to-offset N or --to-time WHEN",
    ("ottla group reset", "--to-datetime"): "--to-time WHEN",
    ("ottla group reset", "--by-duration"): "--to-time AGE, such as --to-time 2h",
}
EXTRA: Final = re.compile(r"unexpected extra arguments?\S* \(([^ ]+)\)$")
"""What click says of one word too many."""


class Root(Group):
    """`ottla`."""

    def names(self) -> list[str]:
        return list(COMMANDS)

    def summaries(self) -> Mapping[str, str]:
        return COMMANDS

    def load(self, name: str) -> click.Command | None:
        return command_in(f"ottla.cli.{name}") if name in COMMANDS else None


def print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from ottla import __version__

        print(f"ottla {__version__}")
        context.exit()


def show_completion(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        show(context.command)
        context.exit()


def install_completion(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        install(context.command)
        context.exit()


def root() -> Root:
    """All commands; each is imported when it is asked for."""

    def eager(name: str, does: Any, help_: str) -> click.Option:
        return click.Option(
            [name], is_flag=True, is_eager=True, expose_value=False, callback=does, help=help_
        )

    return Root(
        PROGRAM,
        help="Kafka in Python: run a broker, and work with any Kafka broker.",
        params=[
            eager("--version", print_version, "Print the version."),
            eager(
                "--install-completion",
                install_completion,
                "Install completion for the current shell.",
            ),
            eager(
                "--show-completion",
                show_completion,
                "Print the completion for the current shell, to copy it or change it.",
            ),
        ],
        context_settings={
            "help_option_names": ["--help", "-h"],
            "show_default": True,
            "terminal_width": min(get_terminal_size().columns, MAX_HELP),
        },
    )


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
    # Also for what click and rich print.
    sys.stdout = screen_of(stdout)
    try:
        code = complete(root()) if completing else carry_out(words)
        return flush_output(words, code)
    finally:
        sys.stdout = stdout


def carry_out(words: Sequence[str], cluster: Any = None) -> int:
    """Run the command, print why it failed, and return its exit code. `cluster`: in place of the
    one that the words mean.
    """
    try:
        with root().make_context(PROGRAM, list(words), obj=cluster) as context:
            code = context.command.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except ReportedError as error:
        failure = as_failed(error)
        if isinstance(failure, OutputFailed):
            discard_output()
        failure.print(command_path(words))
        return failure.exit_code
    except click.ClickException as error:
        return print_usage_error(error, words)
    except (click.Abort, KeyboardInterrupt):
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
    names, group = [PROGRAM], cast(click.Command | None, root())
    for word in words:
        if not isinstance(group, Group):
            break
        names.append(word)
        group = group.load(word)
    return " ".join(names)


def print_usage_error(error: click.ClickException, words: Sequence[str]) -> int:
    """Print what was wrong, and how to get help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else PROGRAM
    if path == PROGRAM and words[:1] and words[0] in COMMANDS:
        path = command_path(words)
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Argument):
        error.param_hint = [error.param.human_readable_name.strip("[].")]
    message = error.format_message()
    said = error.message
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(message, err=True)
        return EXIT_USAGE
    option = str(getattr(error, "option_name", ""))
    if isinstance(error, click.NoSuchOption):
        message = said = f"No such option: {option}"
        if option[1:].isdecimal():
            number = next(word for word in words if word.startswith(option))
            message = f"{number} is not an option, and a number without one must be 0 or more."
    meant = joined_option(option, words, context) or MEANT.get((path, option))
    extra = EXTRA.search(said)
    if extra and path == "ottla produce":
        meant = f"--file {extra[1]}"
    close = [meant] if meant else getattr(error, "possibilities", None)
    if close and isinstance(error, click.NoSuchOption) and not meant:
        close = alike(option, close)
    if close:
        quote = repr if isinstance(error, click.NoSuchCommand) else str
        question = " or ".join(map(quote, sorted(close)))
        message = f"{said.rstrip('.')}. Did you mean {question}?"
    elif not message.endswith((".", "?", "!")):
        message += "."
    print_failure(path, message, f"For help: {path} --help")
    return EXIT_USAGE


def alike(option: str, close: Sequence[str]) -> list[str]:
    """The one that is like this option without the dashes, which all options have."""
    bare = {each.lstrip("-"): each for each in close}
    found = nearest(option.lstrip("-"), bare)
    return [] if found is None else [bare[found]]


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
