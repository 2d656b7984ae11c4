"""Apache Beam: its Java SDK with KafkaIO, and the runner that runs a pipeline in this process; and
its Python SDK, with the service that expands its Kafka transforms into those of the Java SDK.
"""

from pathlib import Path
from typing import Final

from components import cache, ivy, java, packages

VERSION: Final = "2.70.0"
_WITH_NEEDS: Final = (
    f"org.apache.beam:beam-runners-direct-java:{VERSION}",
    f"org.apache.beam:beam-sdks-java-core:{VERSION}",
    f"org.apache.beam:beam-sdks-java-extensions-avro:{VERSION}",
)
# What KafkaIO needs for a schema registry is not on Maven Central, and is only used for one.
_ALONE: Final = (
    f"org.apache.beam:beam-sdks-java-io-kafka:{VERSION}",
    "org.apache.kafka:kafka-clients:3.9.1",
)
_SERVICE: Final = (
    f"org.apache.beam:beam-sdks-java-expansion-service:{VERSION}",
    f"org.apache.beam:beam-sdks-java-harness:{VERSION}",
    *_WITH_NEEDS[1:],
)
# The harness needs jamm, which its POM does not name.
_SERVICE_ALONE: Final = (*_ALONE, "com.github.jbellis:jamm:0.4.0")


def fetched_jars(settings: Path | None = None) -> Path:
    """The folder with the jars, fetched first if missing (75 MB). Raises as `ivy.fetch`."""
    folder = cache.folder(f"beam-{VERSION}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            ivy.fetch(_WITH_NEEDS, into, settings)
            ivy.fetch(_ALONE, into, settings, alone=True)
    return folder


def fetched_python() -> Path:
    """A Python with Beam, fetched first if missing (400 MB). Raises packages.PackageError."""
    return packages.python_environment(f"beam-python-{VERSION}", [f"apache-beam=={VERSION}"])


def service_command(port: int, settings: Path | None = None) -> list[str]:
    """The command of the service, with its jars, fetched first if missing (70 MB).

    It runs the Java transforms itself. Raises as `ivy.fetch`.
    """
    folder = cache.folder(f"beam-expansion-{VERSION}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            ivy.fetch(_SERVICE, into, settings)
            ivy.fetch(_SERVICE_ALONE, into, settings, alone=True)
    service = "org.apache.beam.sdk.expansion.service.ExpansionService"
    options = ["--alsoStartLoopbackWorker", "--javaClassLookupAllowlistFile=*"]
    return [java.find(), "-Xmx512m", "-cp", f"{folder}/*", service, str(port), *options]
