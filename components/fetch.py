"""`python -m components.fetch`: fetches Apache Kafka, which the tests need, into the cache.

Tests compare its responses with Ottla's, run its log dump tool and pipelines on it, and a Kafka
Streams application on Ottla. `--all` also fetches what only `make test-all` needs: the last version
with ZooKeeper mode, whose clusters are handed to Ottla, and the engines of docs/engines.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from components import beam, cache, flink, hdfs, ivy, java, kafka_connect, kafka_streams, packages
from components.apache_kafka import VERSION, ZOOKEEPER_VERSION, KafkaJars

# Before the tests: two that fetch the same at once would spoil it.
ENGINES: Final[Mapping[str, Callable[[Path | None], Any]]] = MappingProxyType(
    {
        f"Apache Flink {flink.VERSION} (450 MB)": flink.fetched,
        f"Kafka Connect {kafka_connect.VERSION} (60 MB)": kafka_connect.fetched_jars,
        "its connectors of files": kafka_connect.fetched_connectors,
        "Apache Hadoop (90 MB)": hdfs.fetched_jars,
        "its distcp": hdfs.fetched_distcp,
        f"Apache Beam {beam.VERSION} (75 MB)": beam.fetched_jars,
    }
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m components.fetch", description=__doc__)
    parser.add_argument("--ivy-settings", type=Path, help="an Ivy settings file, to name a mirror")
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"also {ZOOKEEPER_VERSION} and the engines, for `make test-all`",
    )
    options = parser.parse_args()
    versions = (VERSION, ZOOKEEPER_VERSION) if options.all else (VERSION,)
    engines = ENGINES if options.all else {}
    return max(
        *(_fetch(version, options.ivy_settings) for version in versions),
        _fetch_streams(options.ivy_settings),
        *(_fetch_engine(name, fetch, options.ivy_settings) for name, fetch in engines.items()),
    )


def _fetch_engine(name: str, fetch: Callable[[Path | None], Any], settings: Path | None) -> int:
    try:
        fetch(settings)
    except (ivy.FetchError, java.NoJavaError, packages.PackageError) as error:
        print(
            f"{name} could not be fetched, so the tests that need it are skipped: {error}",
            file=sys.stderr,
        )
        return 1
    return 0


def _fetch_streams(settings: Path | None) -> int:
    try:
        kafka_streams.fetch(settings)
    except (ivy.FetchError, java.NoJavaError) as error:
        print(
            f"Kafka Streams {VERSION} could not be fetched, so the tests that need it are skipped:"
            f" {error}",
            file=sys.stderr,
        )
        return 1
    return 0


def _fetch(version: str, settings: Path | None) -> int:
    if cache.is_ready(KafkaJars.cached_in(version)):
        return 0
    print(f"Fetching Apache Kafka {version} for the tests (once; 60 MB) ...", flush=True)
    try:
        KafkaJars.fetched(settings, version)
    except (ivy.FetchError, java.NoJavaError) as error:
        print(
            f"Apache Kafka {version} could not be fetched, so the tests that need it are skipped:"
            f" {error}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
