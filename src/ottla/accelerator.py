"""Which modules of Ottla are compiled, and whether this process uses the compiled ones.

`hatch_build.py` compiles the files named here together with mypyc: an extension module beside each
source, and one library, `accelerator__mypyc`, that they share. Python's import prefers an extension
to its source. This file prevents that, for all of them together, in two cases:

- OTTLA_PURE_PYTHON is set;
- in a checkout, a source was edited after the library was built, or the library is missing.

A mixture is not possible: compiled modules call each other in C, past Python's import.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Final

COMPILED: Final = (
    "api/produce",
    "log/log",
    "log/offset_index",
    "log/producer_state",
    "log/rolling",
    "log/segment",
    "log/time_index",
    "network/connection",
    "network/dispatcher",
    "network/frame_reader",
    "protocol/frames",
    "protocol/primitives",
    "records/check",
    "records/header",
    "records/key_scan",
    "records/walk",
    "replica/counts",
    "replica/leader_appends",
    "replica/partition",
    "replica/partition_role",
    "runtime/clock",
    "runtime/waiting",
    "timelines/group_timeline",
    "timelines/partition_timeline",
    "timelines/pending_steps",
    "timelines/replica_timeline",
)
"""Paths of the sources below this folder, without ".py"."""
LIBRARY: Final = "accelerator__mypyc"
PURE_PYTHON: Final = "OTTLA_PURE_PYTHON"
_FOLDER: Final = os.path.dirname(os.path.abspath(__file__))


class SourceFinder:
    """Finds the sources of modules that also exist as extensions. For `sys.meta_path`."""

    def __init__(self, folder: str, package: str, paths: Sequence[str]) -> None:
        self._files = {
            f"{package}.{path.replace('/', '.')}": f"{folder}/{path}.py" for path in paths
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        if file is None:
            return None
        return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))


def why_from_source(folder: str = _FOLDER) -> str | None:
    """Why this process runs the sources in `folder`; None if it runs the compiled modules."""
    if os.environ.get(PURE_PYTHON):
        return f"{PURE_PYTHON} is set"
    try:
        built_ns = os.stat(f"{folder}/{LIBRARY}{EXTENSION_SUFFIXES[0]}").st_mtime_ns
    except FileNotFoundError:
        return (
            "Ottla was installed without compiled modules; compiling them needs a C compiler and "
            "Python's headers (on Debian: apt-get install gcc python3-dev)"
        )
    # The files of an installed wheel have the time of the installation, in any order.
    if os.path.exists(f"{folder}/../../pyproject.toml"):
        for path in COMPILED:
            if os.stat(f"{folder}/{path}.py").st_mtime_ns > built_ns:
                return f"{path}.py was edited after it was compiled; `make` compiles it again"
    return None


def select() -> None:
    """Make later imports take the sources, if they must. Called before any other import."""
    if why_from_source() is not None:
        sys.meta_path.insert(0, SourceFinder(_FOLDER, "ottla", COMPILED))


if __name__ == "__main__":
    # For the Makefile, which compiles again when one of these changes.
    print(*(f"src/ottla/{path}.py" for path in COMPILED))
