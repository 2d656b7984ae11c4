"""Kafka Connect: a distributed worker from Apache Kafka's jars, with the connectors of files.

Both are of the last version whose connectors Maven Central has: they do not run in a worker of 4.4.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from components import cache, ivy
from components.apache_kafka import KafkaJars

VERSION: Final = "4.3.1"
CONNECTORS: Final = f"org.apache.kafka:connect-file:{VERSION}"
WORKER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def fetched_connectors(settings: Path | None = None) -> Path:
    """The folder of plug-ins, fetched first if it is missing (18 KB). Raises as `ivy.fetch`."""
    plugins = cache.folder(f"connect-file-{VERSION}")
    if not cache.is_ready(plugins):
        with cache.making(plugins) as into:
            folder = into / "connect-file"
            folder.mkdir()
            ivy.fetch([CONNECTORS], folder, settings, alone=True)
    return plugins


def fetched_jars(settings: Path | None = None) -> KafkaJars:
    """The worker's jars, fetched first if missing (60 MB). Raises as `KafkaJars.fetched`."""
    return KafkaJars.fetched(settings, VERSION)


def worker_command(jars: KafkaJars, properties: Path, settings: Mapping[str, str]) -> list[str]:
    """The command that runs a worker, whose settings are first written to the file `properties`."""
    lines = [f"{name}={value}\n" for name, value in settings.items()]
    properties.write_text("".join(lines))
    return jars.command(WORKER, str(properties), jvm=_JVM)
