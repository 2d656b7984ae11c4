"""`python -m components.newest_spark`: fetches the newest Spark's jars for `make test-all`.

Prints the folder to set as SPARK_CONF_DIR: its spark-defaults.conf names the jars, so that the
tests run unchanged. Ivy alone is not enough, because `spark-token-provider-kafka-0-10` 4.2.0 is
not available everywhere; 4.0.0 replaces it if it is missing.
"""

import argparse
import sys
from pathlib import Path

from components import cache, ivy, java

SPARK, DELTA = "4.2.0", "4.4.0"
WITH_NEEDS = (f"io.delta:delta-spark_4.2_2.13:{DELTA}",)
ALONE = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
TOKENS_VERSIONS = (SPARK, "4.0.0")


def fetch(settings: Path | None) -> Path:
    """Fill the cache once; return the folder for SPARK_CONF_DIR. Raises ivy.FetchError."""
    folder = cache.folder(f"spark-{SPARK}-delta-{DELTA}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            jars = into / "jars"
            jars.mkdir()
            ivy.fetch(WITH_NEEDS, jars, settings)
            ivy.fetch(ALONE, jars, settings, alone=True)
            fetch_tokens(jars, settings)
            keep_what_spark_lacks(jars)
            listed = ",".join(sorted(str(jar) for jar in jars.glob("*.jar")))
            (into / "spark-defaults.conf").write_text(f"spark.jars {listed}\n")
    return folder


def fetch_tokens(jars: Path, settings: Path | None) -> None:
    *newer, last = TOKENS_VERSIONS
    for version in newer:
        try:
            return ivy.fetch([f"{TOKENS}:{version}"], jars, settings, alone=True)
        except ivy.FetchError:
            print(f"{TOKENS}:{version} cannot be had; {last} is used", file=sys.stderr)
    return ivy.fetch([f"{TOKENS}:{last}"], jars, settings, alone=True)


def keep_what_spark_lacks(jars: Path) -> None:
    """Remove the jars that Spark itself ships, in any version."""
    own = {jar.name.rsplit("-", 1)[0] for jar in ivy.ivy_jar().parent.glob("*.jar")}
    for jar in jars.glob("*.jar"):
        if jar.name.rsplit("-", 1)[0] in own:
            jar.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m components.newest_spark", description=__doc__)
    parser.add_argument("--ivy-settings", type=Path, help="an Ivy settings file, to name a mirror")
    options = parser.parse_args()
    try:
        print(fetch(options.ivy_settings))
    except (ivy.FetchError, java.NoJavaError) as error:
        print(f"The jars of Spark {SPARK} could not be fetched: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
