"""`python -m components.fetch`: fetches Apache Kafka, which the tests need, into the cache.

Tests compare its responses with Ottla's, run its log dump tool and pipelines on it, and a Kafka
Streams application on Ottla. `--all`
also fetches the last version with ZooKeeper mode, whose clusters `make test-all` hands to Ottla.
"""

import argparse
import sys
from pathlib import Path

from components import cache, ivy, java, kafka_streams
from components.apache_kafka import VERSION, ZOOKEEPER_VERSION, KafkaJars


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m components.fetch", description=__doc__)
    parser.add_argument("--ivy-settings", type=Path, help="an Ivy settings file, to name a mirror")
    parser.add_argument(
        "--all", action="store_true", help=f"also {ZOOKEEPER_VERSION}, for `make test-all`"
    )
    options = parser.parse_args()
    versions = (VERSION, ZOOKEEPER_VERSION) if options.all else (VERSION,)
    return max(
        *(_fetch(version, options.ivy_settings) for version in versions),
        _fetch_streams(options.ivy_settings),
    )


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
