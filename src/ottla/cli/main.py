"""The entry point: `ottla serve` starts directly, all other commands go through click.

Importing click and building its commands takes about 100 ms and 15 MB, and a broker's whole start
may take 500 ms. So if all options of `serve` are understood, the broker starts at once. Everything
else (`--help`, completion, a mistake in serve's options) is left to click, so that there is one
help and one set of messages.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

from ottla.cli.completion import COMPLETION_VARIABLE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 130 Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    if arguments is None:
        # kio imports hypothesis if it is installed, for test strategies that no command
        # needs. That is half of a broker's start-up in a developer's environment, and creates a
        # folder `.hypothesis` in the working directory.
        sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    completing = COMPLETION_VARIABLE in os.environ
    if words[:1] == ["serve"] and not completing:
        from ottla.cli.serve_options import parse, run

        options = parse(words[1:])
        if options is not None:
            return run(options)
    if arguments is None:
        sys.meta_path.insert(0, LoadedWhenUsed())
    try:
        from ottla.cli.app import run_command

        return run_command(words, completing=completing)
    except KeyboardInterrupt:
        # Ctrl-C before the command had begun.
        from ottla.cli.failures import EXIT_INTERRUPTED

        return EXIT_INTERRUPTED


class LoadedWhenUsed:
    """Finds modules that are imported with the first use of what is in them. For `sys.meta_path`.

    confluent_kafka imports asyncio, and thus ssl, for a registry's client that no command uses: 35
    ms of a command that takes 200.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name) if name == "asyncio" else None
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found


def open_closed_streams() -> None:
    """A standard stream that was closed (`ottla ... >&-`) is the null device.

    Otherwise Python has None in its place, and the next file or connection to be opened gets its
    descriptor: a library that prints would write into that.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - until the end


if __name__ == "__main__":
    sys.exit(main())
