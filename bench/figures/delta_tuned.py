"""The "tuned" job: the plain job with the settings that a good engineer finds by measuring.

As many shuffle partitions as cores, Delta's snapshots rebuilt with as many tasks, and, once a job
has resolved its packages, their jars in the class path instead of another question to Ivy.
"""

import os
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from bench.figures import delta_plain
from bench.figures.delta_plain import start
from ottla.pipelines.spark import cache, resolved
from ottla.pipelines.spark.jars import wanted_packages
from ottla.pipelines.spark.start import find_installed

__all__ = ["open_session", "start"]
SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def open_session(master: str, class_path: str = "") -> SparkSession:
    wanted = wanted_packages(find_installed(), [], [])
    jars = resolved.read(cache.folder(os.environ), wanted)
    if not jars:
        return delta_plain.open_session(master, class_path, SETTINGS)
    listed = ":".join([*filter(None, [class_path]), *jars])
    return delta_plain.open_session(master, listed, {**SETTINGS, "spark.jars.packages": ""})
