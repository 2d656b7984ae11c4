"""`python -m website [FOLDER]`: build the site, with one line per fault."""

from __future__ import annotations

import sys
from pathlib import Path

from website.build import FOLDER, build


def main(words: list[str]) -> int:
    folder = Path(words[0]) if words else FOLDER
    faults = build(folder)
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"The documentation is in {folder / 'html' / 'index.html'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
