"""The machine and the versions that a report must name."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

from components.apache_kafka import VERSION

from bench.rdkafka import PACKAGE
from components import java
from ottla.accelerator import why_from_source

LIBRARIES = ("ottla", "kio", "uvloop", "crc32c", "confluent-kafka", "pyspark", "delta-spark")


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_gb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1_000_000_000


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def describe() -> dict[str, str]:
    """The machine and the versions, by their names in the report."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "memory": f"{memory_gb():.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": python,
        "Ottla's modules": f"from source: {why}" if (why := why_from_source()) else "compiled",
        "java": java.describe(java.find()),
        "Apache Kafka": VERSION,
        "rdkafka_performance": PACKAGE,
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    }
