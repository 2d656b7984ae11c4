"""Runs a demo: `python -m demo` (see `demo.run`) or `python -m demo tables` (`demo.tables`)."""

import argparse
import sys

from demo.run import main


def chosen() -> int:
    """Run the demo that the arguments name; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("which", nargs="?", choices=("flights", "tables"), default="flights")
    if parser.parse_args().which == "flights":
        return main()
    # The tables need a database, and the flights do not.
    from demo.tables import TablesDemo

    return main(TablesDemo)


sys.exit(chosen())
