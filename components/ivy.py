"""Fetches Java packages with the Ivy that PySpark ships; requires only Java and PySpark.

Ivy uses Maven Central, or the repository (such as a mirror) in the file `settings`.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from components import cache, java


class FetchError(Exception):
    """A package could not be fetched; the message has the tool's last lines of output."""


def ivy_jar() -> Path:
    """PySpark's own Ivy. Raises FetchError if PySpark is missing."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise FetchError(
            "PySpark is not installed, and its Ivy is needed. Try: pip install 'ottla[spark]'"
        )
    found = sorted(Path(spec.submodule_search_locations[0]).glob("jars/ivy-*.jar"))
    if not found:
        raise FetchError(
            "this PySpark has no Ivy in its jars folder. Try: pip install pyspark==4.0.0"
        )
    return found[-1]


def module_file(coordinates: Sequence[str], *, alone: bool = False) -> str:
    """An Ivy file that requests each `group:artifact:version` with its runtime dependencies.

    `alone` leaves out the dependencies.
    """
    transitive = str(not alone).lower()
    wanted = []
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        wanted.append(
            f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="default->default"'
            f' transitive="{transitive}"/>'
        )
    return (
        '<ivy-module version="2.0"><info organisation="ottla" module="wanted"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(wanted)}</dependencies></ivy-module>"
    )


def fetch(
    coordinates: Sequence[str],
    into: Path,
    settings: Path | None = None,
    *,
    alone: bool = False,
) -> None:
    """Put the jars of each `group:artifact:version` and of its dependencies into a folder.

    `alone` leaves out the dependencies.

    Raises FetchError if one cannot be fetched, NoJavaError without Java.
    """
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "ivy.xml"
        wanted.write_text(module_file(coordinates, alone=alone))
        command = [java.find(), "-jar", str(ivy_jar()), "-cache", str(cache.folder("ivy"))]
        if settings is not None:
            command += ["-settings", str(settings)]
        command += ["-ivy", str(wanted), "-confs", "default", "-types", "jar", "bundle"]
        command += ["-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=scratch, timeout=900)
    said = done.stdout + done.stderr
    if done.returncode != 0 or "UNRESOLVED" in said or not list(into.glob("*.jar")):
        raise FetchError("Ivy could not fetch all jars:\n" + "\n".join(said.splitlines()[-12:]))
