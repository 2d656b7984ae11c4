"""Spark's own jars for the tests' session, fetched by its Ivy.

`make test` fetches them before the tests: no test's timeout is meant for a slow network.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FETCH_WITHIN_S = 240


def fetch_jars_once(folders: pytest.TempPathFactory) -> None:
    """Have Spark's Ivy fetch its jars, in one process alone: two at a time spoil its cache."""
    # Workers of one run have folders of their own in one that they share.
    shared = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "ivy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared / "ivy.done"
        if not done.exists() and not _are_there():
            _fetch()
        done.touch()


def formats() -> list[str]:
    """The modules of Spark's for formats that the tests' session has.

    The lane of the newest Spark names its jars in spark-defaults.conf, without these.
    """
    return [] if _given_jars() else ["avro"]


def iceberg() -> list[Path]:
    """Iceberg's jar, once it is fetched; none in the lane of the newest Spark."""
    from ottla.pipelines.sinks.iceberg.table import PACKAGE

    return [] if _given_jars() else _jars_of(PACKAGE)


def _jars_of(package: str) -> list[Path]:
    group, name, version = package.split(":")
    return list(Path.home().glob(f".ivy2*/jars/{group}_{name}-{version}.jar"))


def _given_jars() -> list[str]:
    from ottla.pipelines.spark.jars import JARS, names, read_given
    from ottla.pipelines.spark.jvm.context import spark_home

    return names(read_given(os.environ, spark_home()).settings.get(JARS))


def _are_there() -> bool:
    """Tell whether Ivy has the very jars of the tests' session, and session() has noted its own.

    It notes what Ivy found. Where it has not, each worker's session would ask Ivy at its start.
    """
    from ottla.pipelines.spark import cache, resolved
    from ottla.pipelines.spark.jars import wanted_packages
    from ottla.pipelines.spark.start import find_installed

    wanted = wanted_packages(find_installed(), [], _given_jars(), formats())
    is_noted = not wanted or resolved.read(cache.folder(os.environ), wanted) is not None
    return is_noted and all(map(_jars_of, _more_packages()))


def _more_packages() -> list[str]:
    from ottla.pipelines.sinks.iceberg.table import PACKAGE

    return [] if _given_jars() else [PACKAGE]


FETCH = """
import json, sys
from ottla.pipelines import session

formats, packages = map(json.loads, sys.argv[1:])
spark = session("fetch", formats=formats)
for package in packages:
    spark.sql(f"ADD JAR 'ivy://{package}'")
"""


def _fetch() -> None:
    """Raises TimeoutExpired."""
    done = subprocess.run(
        [sys.executable, "-c", FETCH, json.dumps(formats()), json.dumps(_more_packages())],
        env=os.environ | {"OTTLA_CLASS_ARCHIVE": "off"},
        capture_output=True,
        text=True,
        timeout=FETCH_WITHIN_S,
    )
    assert done.returncode == 0, done.stderr


def main() -> int:
    if not _are_there():
        print("Fetching Spark's jars for the tests (once) ...", flush=True)
        _fetch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
