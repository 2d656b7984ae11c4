"""Compiles the broker's hottest files with mypyc while a wheel is built.

The same typed Python source becomes an extension module beside it, which Python's import prefers.
Without mypyc, a C compiler or Python's headers, or with OTTLA_PURE_PYTHON set, the wheel is built
from Python alone: it behaves the same, and is slower (bench/RESULTS.md).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = ("ottla/records/walk.py",)
COMPILE_SECONDS = 600


class CompileError(Exception):
    """The compiler failed; the text is its last line."""


class Accelerator(BuildHookInterface[Any]):
    """Builds the extension modules; an editable install gets them beside the source."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root) / "src"
        for name in COMPILED:
            for old in (source / name).parent.glob(f"{Path(name).stem}[._]*.so"):
                old.unlink()
        if os.environ.get("OTTLA_PURE_PYTHON"):
            return
        try:
            built = [path for name in COMPILED for path in compile_file(source, name)]
        except CompileError as error:
            self.app.display_warning(
                f"Ottla is built without compiled modules, and slower for it: {error}"
            )
            return
        build_data["artifacts"] += [f"src/{path.relative_to(source)}" for path in built]
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def compile_file(source: Path, name: str) -> list[Path]:
    """Compiles `source`/`name` and puts beside it the extension module and what that loads.

    Raises CompileError.
    """
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / Path(name).parent
        target.mkdir(parents=True)
        done = subprocess.run(
            [sys.executable, "-m", "mypyc", str(source / name)],
            cwd=scratch,
            env={**os.environ, "MYPYPATH": str(source)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
        )
        built = list(target.glob("*.so"))
        if done.returncode != 0 or not built:
            said = done.stdout.strip().splitlines() or ["mypyc said nothing"]
            raise CompileError(said[-1])
        return [Path(shutil.copy(path, (source / name).parent)) for path in built]
