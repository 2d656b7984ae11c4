"""Stands for the scripts of Apache Kafka's distribution, which suites of clients call by name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from components.apache_kafka import TOOL_JVM_FLAGS, KafkaJars

MAINS: Final = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand",
}


def write_scripts(jars: KafkaJars, folder: Path) -> Path:
    """Makes `bin` in this folder, as in Kafka's distribution; returns it."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    for name, main in MAINS.items():
        words = jars.command(main, jvm=TOOL_JVM_FLAGS)
        quoted = " ".join(f"'{word}'" for word in words)
        script = place / name
        script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
        script.chmod(0o755)
    return place
