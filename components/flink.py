"""Apache Flink: PyFlink from PyPI in an environment of its own, and the jar of its Kafka connector.

PyFlink brings Flink itself: a job runs in a Flink of its own, inside the JVM that it starts.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from components import cache, ivy, java, packages

VERSION: Final = "2.2.1"
CONNECTOR: Final = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
# Beam, in which Flink runs Python's functions, with what it allows: pip searches long for these.
_PACKAGES: Final = (
    f"apache-flink=={VERSION}",
    "apache-beam==2.61.0",
    "numpy==2.1.3",
    "pyarrow==16.1.0",
)


@dataclass(frozen=True)
class Flink:
    """A Python with PyFlink, the connector's jar, and what they need in the environment."""

    python: Path
    connector: Path
    environment: Mapping[str, str]


def fetched(settings: Path | None = None) -> Flink:
    """PyFlink and the connector, fetched first if they are missing (440 MB and 11 MB).

    Raises packages.PackageError, ivy.FetchError or java.NoJavaError.
    """
    command = java.find()
    python = packages.python_environment(f"flink-{VERSION}", _PACKAGES)
    jars = cache.folder(f"flink-connector-{CONNECTOR.rpartition(':')[2]}")
    if not cache.is_ready(jars):
        with cache.making(jars) as into:
            ivy.fetch([CONNECTOR], into, settings, alone=True)
    home = Path(shutil.which(command) or command).resolve().parents[1]
    return Flink(python, next(jars.glob("*.jar")), {"JAVA_HOME": str(home)})
