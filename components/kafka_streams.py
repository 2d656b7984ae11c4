"""A Kafka Streams application: counts the words of a topic, exactly once. It is the program of
docs/engines/kafka-streams.md.

Its state is in memory and in a changelog topic, so that the jar of Kafka Streams is enough, beside
those of Apache Kafka: RocksDB (70 MB) is not needed. Java compiles the source as it starts it, so
it must be a JDK.
"""

import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from components import cache, engine_page, ivy
from components.apache_kafka import VERSION, KafkaJars
from components.child import Child

PAGE: Final = "kafka-streams.md"
RUNNING: Final = "state RUNNING"
# Most of what an instance does is to start, and to compile its source.
_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def cached_in() -> Path:
    """The folder of Kafka Streams' jar."""
    return cache.folder(f"kafka-streams-{VERSION}")


def fetch(settings: Path | None = None) -> None:
    """Fetches the jar into the cache, if it is missing (2 MB). Raises as `ivy.fetch`."""
    if not cache.is_ready(cached_in()):
        with cache.making(cached_in()) as folder:
            ivy.fetch([f"org.apache.kafka:kafka-streams:{VERSION}"], folder, settings, alone=True)


def why_missing() -> str | None:
    """Why no application can be started; None if one can."""
    if not cache.is_ready(cached_in()):
        return "Kafka Streams' jar is not in the cache; `make test` fetches it"
    if shutil.which("javac") is None:
        return "no Java compiler on the PATH; install a JDK"
    return None


@dataclass(frozen=True)
class WordCounts:
    """One application: its members share the words of `source`, and write counts to `sink`."""

    jars: KafkaJars
    bootstrap: str
    name: str
    """The application's id, which is that of its group."""
    source: str
    sink: str
    folder: Path
    settings: Sequence[str] = ()
    """More settings of Kafka Streams: NAME=VALUE."""

    def start(self, number: int, *settings: str) -> Child:
        """Starts an instance with two threads: each is a member. It has these settings, too."""
        arguments = (
            self.bootstrap,
            self.name,
            self.source,
            self.sink,
            str(self.folder / f"state-{number}"),
            *self.settings,
            *settings,
        )
        source = self.folder / f"instance-{number}.java"
        source.write_text(engine_page.program(PAGE, "java"))
        paths = f"{cached_in()}/*:{self.jars.folder}/*"
        command = [self.jars.java, *_JVM, "-cp", paths, str(source), *arguments]
        return Child(command, self.folder / f"instance-{number}.log")


def stop(instance: Child) -> None:
    """It leaves its group, and ends."""
    instance.process.send_signal(signal.SIGTERM)
    instance.process.wait(60)
