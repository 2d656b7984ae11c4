"""`python -m bench.fetch`: fetches Apache Kafka, which the tests need, into the cache.

Tests compare its responses with Ottla's, and run its log dump tool and pipelines on it.
"""

import argparse
import sys
from pathlib import Path

from bench import cache, ivy, java
from bench.apache_kafka import VERSION, KafkaJars


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fetch", description=__doc__)
    parser.add_argument("--ivy-settings", type=Path, help="an Ivy settings file, to name a mirror")
    options = parser.parse_args()
    if cache.is_ready(KafkaJars.place()):
        return 0
    print(f"Fetching Apache Kafka {VERSION} for the tests (once; 60 MB) ...", flush=True)
    try:
        KafkaJars.fetched(options.ivy_settings)
    except (ivy.FetchError, java.NoJavaError) as error:
        print(
            f"Apache Kafka {VERSION} could not be fetched, so the tests that need it are skipped:"
            f" {error}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
