"""Compiles the broker's hottest files with mypyc while a wheel is built.

The same typed Python source becomes an extension module beside it, which Python's import prefers
(src/ottla/accelerator.py). Without mypyc, a C compiler or Python's headers, or with
OTTLA_PURE_PYTHON set, the wheel is built from Python alone: it behaves the same, and is slower
(bench/RESULTS.md).
"""

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE_SECONDS = 900
SCRIPT = """
import sys
from mypyc.build import mypycify
from setuptools import setup

setup(
    packages=[],
    script_args=["build_ext", "--build-lib", "built", "--build-temp", "objects"],
    ext_modules=mypycify(
        # Other packages count as untyped, so that the result is the same wherever it is built.
        ["--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
        + sys.argv[1:],
        debug_level="0",
        group_name="ottla.accelerator",
        target_dir="c",
    ),
)
"""


class CompileError(Exception):
    """The compiler failed; the text is its last line."""


class Accelerator(BuildHookInterface[Any]):
    """Builds the extension modules; an editable install gets them beside the source."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root) / "src"
        for old in (source / "ottla").rglob("*.so"):
            old.unlink()
        if os.environ.get("OTTLA_PURE_PYTHON"):
            return
        paths = runpy.run_path(str(source / "ottla" / "accelerator.py"))["COMPILED"]
        try:
            built = compile_files(source, [f"ottla/{path}.py" for path in paths])
        except CompileError as error:
            self.app.display_warning(
                f"Ottla is built without compiled modules, and slower for it: {error}"
            )
            return
        build_data["artifacts"] += [f"src/{path.relative_to(source)}" for path in built]
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def compile_files(source: Path, names: list[str]) -> list[Path]:
    """Compiles these files below `source`; puts the extension modules and their library beside
    them.

    Raises CompileError.
    """
    began = time.time()
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *(str(source / name) for name in names)],
            cwd=scratch,
            env={**os.environ, "MYPYPATH": str(source)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
        )
        folder = Path(scratch) / "built"
        built = sorted(folder.rglob("*.so"))
        if done.returncode != 0 or not built:
            said = done.stdout.strip().splitlines() or ["mypyc said nothing"]
            raise CompileError(said[-1])
        placed = [Path(shutil.copy(each, source / each.relative_to(folder))) for each in built]
    for each in placed:
        # A source that was edited meanwhile is newer than its extension.
        os.utime(each, (began, began))
    return placed
