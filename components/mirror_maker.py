"""Apache Kafka's MirrorMaker 2 (KIP-382) as a process, to measure beside `ottla mirror`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from components import cache, ivy
from components.apache_kafka import KafkaJars
from components.child import Child

VERSION: Final = "4.3.1"
"""Of Apache Kafka; Maven Central has no newer connect-mirror."""
HEAP: Final = ("-Xms256M", "-Xmx2G")
"""Of its own start script, connect-mirror-maker.sh."""
ALONE: Final = {
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
}
"""What it needs to keep its own topics on clusters of one broker."""


def cached_in() -> Path:
    """The folder of its own two jars."""
    return cache.folder(f"connect-mirror-{VERSION}")


@dataclass(frozen=True)
class MirrorMaker:
    """Mirrors topics of `source` to `target`, as `ALIAS.TOPIC`."""

    jars: KafkaJars
    """Of VERSION."""

    @classmethod
    def fetched(cls, settings: Path | None = None) -> "MirrorMaker":
        """With the jars in the cache, fetched first if they are missing. Raises as
        `KafkaJars.fetched`.
        """
        if not cache.is_ready(cached_in()):
            wanted = [
                f"org.apache.kafka:{name}:{VERSION}"
                for name in ("connect-mirror", "connect-mirror-client")
            ]
            with cache.making(cached_in()) as folder:
                ivy.fetch(wanted, folder, settings, alone=True)
        return cls(KafkaJars.fetched(settings, VERSION))

    def start(
        self,
        folder: Path,
        alias: str,
        source: str,
        target: str,
        topics: str,
        settings: Mapping[str, str] | None = None,
    ) -> Child:
        """Starts the process without waiting for it. `topics`: a pattern."""
        lines = {
            "clusters": f"{alias}, target",
            f"{alias}.bootstrap.servers": source,
            "target.bootstrap.servers": target,
            f"{alias}->target.enabled": "true",
            f"{alias}->target.topics": topics,
            "target->" + alias + ".enabled": "false",
            **ALONE,
            **(settings or {}),
        }
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "mm2.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        command = [self.jars.java, *HEAP, "-cp", f"{cached_in()}/*:{self.jars.folder}/*"]
        command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(file)]
        return Child(command, folder / "mm2.log")
