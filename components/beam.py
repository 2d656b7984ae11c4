"""Apache Beam: its Java SDK with KafkaIO, and the runner that runs a pipeline in this process."""

from pathlib import Path
from typing import Final

from components import cache, ivy

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


def fetched_jars(settings: Path | None = None) -> Path:
    """The folder with the jars, fetched first if missing (75 MB). Raises as `ivy.fetch`."""
    folder = cache.folder(f"beam-{VERSION}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            ivy.fetch(_WITH_NEEDS, into, settings)
            ivy.fetch(_ALONE, into, settings, alone=True)
    return folder
