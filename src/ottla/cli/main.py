"""The entry point: `ottla serve` by the shortest way, everything else through typer.

Why two ways: importing typer and building its commands takes about 100 ms and 15 MB here (it
brings pydantic and rich), and a broker's whole start may take 500 ms. So a `serve` whose options
are all understood goes straight to the broker. Anything else, be it `--help`, completion or a
mistake in serve's options, is left to typer, so that there is one help and one set of messages.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

COMPLETION_VARIABLE = "_OTTLA_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code: 0 done, 1 failed, 2 wrong use, 130 Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        # kio imports hypothesis wherever that is installed, for test strategies that no command
        # wants: half of a broker's start-up in a developer's environment, and it leaves a folder
        # `.hypothesis` wherever it is imported.
        sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    completing = COMPLETION_VARIABLE in os.environ
    if words[:1] == ["serve"] and not completing:
        from ottla.cli.serve import parse, run

        options = parse(words[1:])
        if options is not None:
            return run(options)
    try:
        from ottla.cli.app import run_command

        return run_command(words, completing=completing)
    except KeyboardInterrupt:
        # Ctrl-C so early that the command had not begun.
        from ottla.cli.failures import EXIT_INTERRUPTED

        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
