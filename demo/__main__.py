"""Runs a demo: `python -m demo` (see `demo.run`), `... secured` or `... tables`."""

import argparse
import sys

from demo.run import main


def chosen() -> int:
    """Run the demo that the arguments name; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "which", nargs="?", choices=("flights", "secured", "tables"), default="flights"
    )
    which = parser.parse_args().which
    if which == "flights":
        return main()
    if which == "secured":
        from demo.secured import SecuredDemo

        return main(SecuredDemo)
    # The tables need a database, and the flights do not.
    from demo.tables import TablesDemo

    return main(TablesDemo)


sys.exit(chosen())
